"""The registry of heads, and the conversion of heads to and from dicts."""

from collections.abc import Callable
import dataclasses
from typing import TYPE_CHECKING
from typing import Any
from typing import TypeVar

from tf_adapters.common import dataclass_config
from tf_adapters.common.checks import check_known
from tf_adapters.common.errors import UserError
from tf_adapters.common.registry import Registry
from tf_adapters.heads.head import Head
from tf_adapters.tasks import output_kinds
from tf_adapters.tasks.task import Task

if TYPE_CHECKING:
    from tf_adapters.encoders.encoder import Encoder

H = TypeVar("H", bound=Head)

# Maps names to classes; `register` fills it.
HEADS = Registry("head", "@tf_adapters.heads.register")


def register(
    name: str, kind: output_kinds.OutputKind | None = None
) -> Callable[[type[H]], type[H]]:
    """Returns a decorator that registers a `Head` under a name.

    Args:
        name: String that selects the head with `head` in a task file and
            identifies it in adapter folders.
        kind: `OutputKind`. Required unless a kind of this name exists.

    Raises:
        UserError: If the class is not a `Head`, the name is taken, or `kind` is
            missing.
    """

    def decorate(cls: type[H]) -> type[H]:
        HEADS.add(name, cls, Head)
        if kind is not None:
            output_kinds.KINDS[name] = kind
        if name not in output_kinds.KINDS:
            raise UserError(
                f"The head `{name}` needs an `OutputKind`, which says what its "
                "rows and labels are: `@heads.register(name, OutputKind(...))`."
            )
        return cls

    return decorate


def for_task(
    task: Task, encoder: "Encoder | None" = None, **settings: Any
) -> Head:
    """Creates the head for a task.

    Args:
        task: `Task`.
        encoder: `Encoder`. Required for masked language modeling.
        **settings: Fields of the head that replace its defaults.

    Raises:
        UserError: If a setting is unknown, or its value is invalid.
    """
    cls = HEADS[task.head]
    fields = {field.name for field in dataclasses.fields(cls)} - {"labels"}
    for key in settings:
        what = f"setting of the head `{task.head}`,"
        check_known(what, key, sorted(fields))
    return cls.for_task(task, encoder, **settings)


def name_of(head: Head) -> str:
    """Returns the name under which a head's class is registered."""
    return HEADS.name_of(head)


def to_config(head: Head) -> dict[str, Any]:
    """Returns a dict of a head's settings and its registered name, `name`.

    The values can be written as JSON.
    """
    return {"name": name_of(head), **dataclasses.asdict(head)}


def from_config(config: dict[str, Any]) -> Head:
    """Creates a head from a dict that `to_config` returned.

    Raises:
        UserError: If the name or a parameter is unknown, or if a value has the
            wrong type.
    """
    options = dict(config)
    name = options.pop("name")
    check_known("head", name, HEADS)
    return dataclass_config.from_dict(HEADS[name], options, "head.")
