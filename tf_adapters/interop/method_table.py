"""A method's settings in another library, as a table that is read both ways.

An `Entry` describes a method, and a `Row` one of its settings. The same rows
convert a configuration of the other library to a method, and back.
"""

from collections.abc import Callable
import dataclasses
from pathlib import Path
import typing
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters import methods
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown

if TYPE_CHECKING:
    from tf_adapters.interop.architectures import Architecture


def _unchanged(value: Any) -> Any:
    return value


def _nothing(
    method: methods.Method,
    shape: methods.EncoderShape,
    architecture: "Architecture",
) -> dict[str, Any]:
    return {}


class Row(typing.NamedTuple):
    """Configuration keys of another library, and our equivalent settings.

    Attributes:
        theirs: Their keys, separated by spaces.
        ours: Our settings, separated by spaces.
        to_ours: Function from the values of their keys to the value of our
            setting, or to a tuple of values if there are several settings. A
            `LookupError` means that we have no such value.
        to_theirs: The inverse function.
    """

    theirs: str
    ours: str
    to_ours: Callable[..., Any] = _unchanged
    to_theirs: Callable[..., Any] = _unchanged


def by(
    table: dict[Any, Any],
) -> tuple[Callable[..., Any], Callable[[Any], Any]]:
    """Returns the functions `to_ours` and `to_theirs` for a `Row`.

    Both look up a value in a dict.

    Args:
        table: Dict from their value to our value. If a row has several of
            their keys, the keys of the dict are tuples.
    """
    back = {ours: theirs for theirs, ours in table.items()}

    def to_ours(*theirs: Any) -> Any:
        only, *others = theirs
        return table[theirs if others else only]

    return to_ours, back.__getitem__


def as_number(value: float) -> int | float:
    """Converts a float to an integer if it has no fraction.

    The other libraries write such numbers as integers.
    """
    return int(value) if float(value).is_integer() else value


@dataclasses.dataclass(frozen=True)
class Entry:
    """A method in another library's format.

    Attributes:
        method: Our class.
        rows: A `Row` for each setting of the method.
        tensor_names: Function that returns the method's `TensorName`s. Its
            arguments depend on the other library.
        defaults: Dict with the values of keys that a file may lack. All of
            these keys are written.
        where: Dict from their key to a value. Only a configuration with these
            values describes this method.
        needs: Dict from their key to the values that this method supports.
        ignored: Names of their keys that have no effect on the outputs.
        fixed: Dict from our setting to the only value that their format
            supports.
        of_encoder: Function from the method, `EncoderShape` and `Architecture`
            to a dict of further keys to write.
        hint: Sentence for the error if the tensors do not fit the method.
    """

    method: type
    rows: tuple[Row, ...]
    tensor_names: Callable[..., Any]
    defaults: dict[str, Any]
    where: dict[str, Any] = dataclasses.field(default_factory=dict)
    needs: dict[str, Any] = dataclasses.field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    fixed: dict[str, Any] = dataclasses.field(default_factory=dict)
    of_encoder: Callable[..., Any] = _nothing
    hint: str = ""

    def fits(self, config: dict[str, Any]) -> bool:
        """Returns whether another library's configuration fits this method."""
        config = {**self.defaults, **config}
        return all(config[key] == value for key, value in self.where.items())

    def read(
        self, config: dict[str, Any], source: str | Path
    ) -> methods.Method:
        """Returns the method that a configuration describes.

        Args:
            config: Dict in the other library's format.
            source: Path of the configuration, for errors.

        Raises:
            AdapterError: If a key is unknown, or has a value that the method
                does not support.
        """
        self._check_keys(config, source)
        config, settings = {**self.defaults, **config}, dict(self.fixed)
        for row in self.rows:
            values = [config[key] for key in row.theirs.split()]
            try:
                found = row.to_ours(*values)
            except LookupError as error:
                raise _no_method(source, row.theirs, *values) from error
            settings |= _by_name(row.ours, found)
        return self.method(**settings)

    def _check_keys(self, config: dict[str, Any], source: str | Path) -> None:
        known = {key for row in self.rows for key in row.theirs.split()}
        known |= {*self.defaults, *self.needs, *self.ignored}
        for key, value in config.items():
            is_unknown = key not in known and value
            if is_unknown or value not in self.needs.get(key, (value,)):
                raise _no_method(source, key, value)

    def write(self, method: methods.Method, library: str) -> dict[str, Any]:
        """Returns the configuration that describes a method of this class.

        Args:
            method: `Method`.
            library: Name of the other library, for errors.

        Raises:
            AdapterError: If the format does not support a setting's value.
        """
        for setting, value in self.fixed.items():
            if getattr(method, setting) != value:
                raise _other_value(method, library, setting, value)
        config = {**self.defaults, **self.where}
        for row in self.rows:
            values = (getattr(method, name) for name in row.ours.split())
            config |= _by_name(row.theirs, row.to_theirs(*values))
        return config


def _by_name(names: str, values: Any) -> dict[str, Any]:
    """Returns a dict from each name in `names` to its value.

    `names` is a string with names separated by spaces. `values` is the value of
    a single name, or a tuple if there are several names.
    """
    keys = names.split()
    values = (values,) if len(keys) == 1 else values
    return dict(zip(keys, values, strict=True))


def _no_method(source: str | Path, keys: str, *values: Any) -> AdapterError:
    pairs = zip(keys.split(), values, strict=True)
    found = ", ".join(f"`{cut(key)}: {shown(value)}`" for key, value in pairs)
    return AdapterError(
        f"{source} has {found}, which tf_adapters has no method for."
    )


def _other_value(
    method: methods.Method, library: str, setting: str, expected: Any
) -> AdapterError:
    received = getattr(method, setting)
    # The values of `form` are also names of formats.
    advice = "save it without --format"
    if setting == "form":
        advice = f"export it with --format={received}"
    return AdapterError(
        f"{library} has `{methods.name_of(method)}` with method.{setting}="
        f"{_as_setting(expected)} only. Received: {_as_setting(received)}. "
        f"Train it so, or {advice}."
    )


def _as_setting(value: Any) -> str:
    """Returns a value as it is written on the command line."""
    value = list(value) if isinstance(value, tuple) else value
    return str(value).lower() if isinstance(value, bool) else str(value)
