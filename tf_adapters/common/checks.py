"""Names and choices are checked here, and unknown ones are answered here."""

import dataclasses
import difflib
import typing

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut

# What PEFT, `adapters` and KerasHub call a setting.
_ELSEWHERE = {
    **dict.fromkeys(("size", "bottleneck_size", "adapter_size"), "units"),
    **dict.fromkeys(("bottleneck_dim", "hidden_dim", "dim", "width"), "units"),
    **dict.fromkeys(("r", "lora_rank"), "rank"),
    "lora_alpha": "alpha",
    "lora_dropout": "dropout",
    "target_modules": "projections",
    "non_linearity": "activation",
    "num_classes": "labels",
    "classes": "labels",
}


def did_you_mean(name, known):
    """Returns " Did you mean `x`?" where a known name is close, else ""."""
    known = list(known)
    before, dot, last = str(name).rpartition(".")
    close = [f"{before}{dot}{_ELSEWHERE.get(last)}"]
    if close[0] not in known:
        close = difflib.get_close_matches(str(name), known, n=1)
    return f" Did you mean `{close[0]}`?" if close else ""


def check_known(what, name, known, error=UserError, hint=""):
    """Raises an error unless `name` is one of `known`.

    Args:
        what: What `name` names, for example "method".
        name: Anything.
        known: Iterable of texts.
        error: Class of the error. Defaults to `UserError`.
        hint: What else may be given, a sentence.

    Raises:
        UserError: Says what is close to `name`, and all that is known.
    """
    known = list(known)
    if isinstance(name, str) and name in known:
        return
    raise error(
        f"Unknown {what} `{cut(name)}`.{did_you_mean(name, known)} Known: "
        f"{', '.join(known)}.{hint and ' ' + hint}"
    )


def check_choices(instance):
    """Raises an error if a dataclass has a value that its `Literal` has not.

    Fields that are a tuple of choices are checked one by one.

    Raises:
        UserError: Names the field.
    """
    hints = typing.get_type_hints(type(instance))
    for name in (field.name for field in dataclasses.fields(instance)):
        hint, value = hints[name], getattr(instance, name)
        values = (value,)
        if typing.get_origin(hint) is tuple:
            hint, values = typing.get_args(hint)[0], value
        if typing.get_origin(hint) is typing.Literal:
            for one in values:
                check_known(name, one, typing.get_args(hint))
