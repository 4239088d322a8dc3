"""The settings that a search chooses among, and the settings of one trial."""

from collections.abc import Iterable
from collections.abc import Sequence
import dataclasses
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common import dataclass_config
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown
from tf_adapters.config import presets
from tf_adapters.config import resolve
from tf_adapters.text import defaults

if TYPE_CHECKING:
    from tf_adapters.config.settings import Config


METHODS = ("pfeiffer", "houlsby", "lora")
# Maps each setting that determines an adapter's size to the values to try.
SIZES = {
    "units": (8, 16, 32, 64, 128, 256),
    "rank": (2, 4, 8, 16, 32),
    "prefix_length": (5, 10, 20, 30, 60),
    "prompt_length": (5, 10, 20, 40),
}
_USUAL = "usual"
# Range of the factor by which the method's usual learning rate is multiplied.
_FACTORS = (0.1, 10.0)


@dataclasses.dataclass(frozen=True)
class Space:
    """The search space: the settings that a search chooses among.

    Settings that the user gives, such as a learning rate or a size, are not
    searched.

    Args:
        layers: Tuple of nested dicts of the settings that the user gives,
            without the name of a method. Later ones override earlier ones.
        methods: Tuple of the names of methods or presets.
    """

    layers: tuple[Any, ...]
    methods: tuple[Any, ...]

    @property
    def _given(self) -> Any:
        return set().union(*map(dataclass_config.flatten, self.layers))

    @property
    def has_rate(self) -> bool:
        """Whether the learning rate is searched."""
        return "train.learning_rate" not in self._given

    def size_of(self, method: str) -> str | None:
        """Returns the name of the setting that sets a method's adapter size.

        The name is a key of `SIZES`, such as `"rank"`. Returns `None` if the
        size is not searched: it is given, the method has none, or only some
        sizes suit its number of attention heads.
        """
        from tf_adapters import methods

        given = {f"method.{name}" for name in (*SIZES, "reduction_factor")}
        if given & self._given:
            return None
        name = presets.complete({"name": method})["name"]
        fields = {f.name for f in dataclasses.fields(methods.METHODS[name])}
        # Members of a fusion keep the sizes that they were trained with.
        if {"adapters", "num_heads"} & fields:
            return None
        return next((size for size in SIZES if size in fields), None)

    def usual(self, method: str) -> dict[str, Any]:
        """Returns Optuna parameters that give a method's default settings.

        They are a dict from the name of each parameter to its value.
        """
        values: dict[str, Any] = (
            {"method": method} if len(self.methods) > 1 else {}
        )
        if self.has_rate:
            values["learning_rate_factor"] = 1.0
        size = self.size_of(method)
        return values | ({size: _USUAL} if size else {})

    def suggest(self, trial: Any) -> dict[str, dict[str, Any]]:
        """Draws settings for an Optuna trial; returns them in a nested dict."""
        method = self.methods[0]
        if len(self.methods) > 1:
            method = trial.suggest_categorical("method", self.methods)
        layer = {"method": {"name": method}}
        size = self.size_of(method)
        if size:
            chosen = trial.suggest_categorical(size, (_USUAL, *SIZES[size]))
            if chosen != _USUAL:
                layer["method"][size] = chosen
        if self.has_rate:
            factor = trial.suggest_float(
                "learning_rate_factor", *_FACTORS, log=True
            )
            usual = self.config(layer).train.learning_rate
            layer["train"] = {"learning_rate": float(f"{factor * usual:.3g}")}
        return layer

    def config(self, layer: dict[str, Any]) -> "Config":
        """Returns the `Config` of a trial. Its `method` is still a dict.

        `layer` is a nested dict of the trial's settings. The settings that the
        user gave override it.
        """
        layers = defaults.with_short_run([layer, *self.layers])
        return resolve.with_absolute_paths(resolve.combine(*layers))

    def on_top(self, layer: dict[str, Any]) -> "Space":
        """Returns a copy of the space with one more layer of settings.

        `layer` is a nested dict of settings. It overrides the other layers.
        """
        return dataclasses.replace(self, layers=(*self.layers, layer))

    def describe(self) -> str:
        """Returns a phrase that lists the searched settings and values."""
        parts = [f"method ({', '.join(self.methods)})"]
        if self.has_rate:
            low, high = _FACTORS
            parts.append(f"learning rate ({low:g} to {high:g} times the usual)")
        sizes = dict.fromkeys(filter(None, map(self.size_of, self.methods)))
        parts += [f"{n} ({', '.join(map(str, SIZES[n]))})" for n in sizes]
        return ", ".join(parts)


def make_space(
    layers: Iterable[dict[str, Any]], methods: Sequence[str] | None = None
) -> "Space":
    """Returns the `Space` of a search.

    Args:
        layers: Nested dicts of settings. If they name a method, only this
            method is searched.
        methods: List of names of methods. Default: the method in `layers`, or
            `METHODS` if `layers` name no method.

    Raises:
        ConfigError: If a method is unknown, `methods` is a string, or both
            `layers` and `methods` name methods.
    """
    if isinstance(methods, str):
        raise ConfigError(
            f'`methods` must be a list of names, such as ["lora"]. Received: '
            f"{shown(methods)}"
        )
    layers = [presets.with_method_as_dict(layer) for layer in layers]
    named = [layer["method"]["name"] for layer in layers if _names(layer)]
    if named and methods:
        raise ConfigError(
            f"Give --method={cut(named[-1])} to search the settings of one "
            "method, or --methods to search among several, not both."
        )
    methods = tuple(dict.fromkeys(methods or named[-1:] or METHODS))
    for method in methods:
        presets.complete({"name": method})
    return Space(tuple(map(_unnamed, layers)), methods)


def _names(layer: dict[str, Any]) -> bool:
    return "name" in layer.get("method", {})


def _unnamed(layer: dict[str, Any]) -> dict[str, Any]:
    """Returns a nested dict of settings without the name of the method."""
    if "method" not in layer:
        return layer
    method = {k: v for k, v in layer["method"].items() if k != "name"}
    return {**layer, "method": method}


def words(layer: dict[str, Any]) -> str:
    """Returns a trial's settings as a phrase, such as "lora, rank 8"."""
    method = dict(layer["method"])
    parts = [method.pop("name"), *(f"{k} {v}" for k, v in method.items())]
    if "train" in layer:
        parts.append(f"learning rate {layer['train']['learning_rate']:g}")
    return ", ".join(parts)
