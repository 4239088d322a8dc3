"""Default learning rates and training lengths for texts."""

import math
import numbers
from typing import Any

from tf_adapters.common import dataclass_config
from tf_adapters.common.errors import UserError
from tf_adapters.config import presets

# These rates suit hundreds to a few thousand texts and few epochs, on a small
# encoder and on one of base size. docs/log.md ("Learning rates of short runs")
# has the measurements. The papers' rates suit many more steps.
_RATES = {
    "full": 5e-5,
    "multitask": 5e-5,
    "top_layers": 1e-4,
    "houlsby": 3e-4,
    "fusion": 3e-4,
    "diff_pruning": 3e-3,
    "layer_norm": 3e-3,
    "head_only": 1e-2,
    "adapter_bias": 3e-3,
    "ia3": 1e-2,
    "prompt_tuning": 3e-2,
}
_USUAL_RATE = 1e-3
# Of bottlenecks whose output is multiplied by a constant, as in `parallel` and
# `mam`: at 1e-3 they learn nothing on an encoder of base size.
_SCALED_RATE = 1e-4
# The default method of text models and of runs on tables. It trains 0.5 % of
# the weights, and its adapters can be fused and served together.
METHOD = "pfeiffer"
# On a few hundred rows, a preset's epochs are only a few dozen steps.
_LEAST_STEPS = 200


def learning_rate_for(
    method: dict[str, Any],
    learning_rate: float | str | None = None,
    preset: str | None = None,
) -> float:
    """Returns the learning rate of AdamW for a method.

    Args:
        method: Dict with the `name` of a preset, and settings that override
            the preset's settings; or the method's `to_config`.
        learning_rate: A positive number, `"paper"` for the rate of the method's
            preset, or `None` (default) for a rate that suits short runs.
        preset: Name of the preset with the paper's rate. Default: the method's
            name.

    Raises:
        UserError: If the rate is anything else, or the preset has no rate.
    """
    if learning_rate is None:
        return _short_run_rate(method)
    if learning_rate == "paper":
        return _rate_of_preset(preset or method["name"])
    # NumPy's numbers are real numbers, too.
    is_number = isinstance(learning_rate, numbers.Real)
    rate = float(learning_rate) if is_number else math.nan
    if not 0 < rate < math.inf:
        raise UserError(
            "Invalid value for argument `learning_rate`. Expected: a positive "
            f'number, or "paper". Received: {learning_rate!r}'
        )
    return rate


def _short_run_rate(method: dict[str, Any]) -> float:
    """Returns the lowest rate that a method or one of its parts needs."""
    settings = presets.complete(method)
    rate = _RATES.get(settings["name"], _USUAL_RATE)
    is_scaled = _number(settings.get("scaling")) > 1
    if settings["name"] == "bottleneck_forms" and is_scaled:
        rate = _SCALED_RATE
    parts = settings.get("parts") if settings["name"] == "union" else None
    if not isinstance(parts, list | tuple):
        parts = ()  # Wrong values are refused when the method is made.
    named = [{"name": p} if isinstance(p, str) else p for p in parts]
    return min([rate, *map(_short_run_rate, named)])


def _number(value: Any) -> float:
    """Returns a setting as a number. In YAML, 1e-1 is a string."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return 0.0


def _rate_of_preset(method: str) -> float:
    (preset,) = presets.with_preset([{"method": method}])[:1]
    rate = preset.get("train", {}).get("learning_rate")
    if not isinstance(rate, float):
        raise UserError(
            f"No paper gives a learning rate for the method `{method}`. Pass a "
            "number as `learning_rate`."
        )
    return rate


def with_short_run(layers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Adds defaults for a short run, if the settings name a table of texts.

    The learning rates of the presets suit many steps. A run on a table
    therefore uses a rate for short runs, and at least 200 steps unless epochs
    or steps are set. Its method is `pfeiffer` unless one is set. Evaluations
    include the loss, because the accuracy on a few rows is often the same for
    several epochs. Regression begins at the mean of the labels. Settings in
    `layers` take precedence. A method that trains a network of its own,
    `no_bert`, keeps its preset.

    Args:
        layers: Nested dicts of settings; later ones take precedence. The last
            one names the table, if any.
    """
    if not layers[-1].get("data", {}).get("file"):
        return layers
    method = presets.preset_name(layers, METHOD)
    if _has_own_training(method):
        return layers
    settings = presets.method_of(layers, METHOD)
    train: dict[str, Any] = {
        "learning_rate": learning_rate_for(settings),
        "evaluate_loss": True,
    }
    named = set().union(*map(dataclass_config.flatten, layers))
    if not named & {"train.epochs", "train.max_steps"}:
        train["min_steps"] = _LEAST_STEPS
    is_regression = head_of(layers) == "regression"
    head = {"initial_bias": "mean"} if is_regression else {}
    usual = {"train": train, "method": {"name": method}, "head": head}
    return [usual, *layers]


def head_of(layers: list[dict[str, Any]]) -> str:
    """Returns the name of the head in layers of settings, or the default's.

    Args:
        layers: Nested dicts of settings; later ones take precedence.
    """
    data = [layer.get("data") for layer in layers]
    named = [one.get("head") for one in data if isinstance(one, dict)]
    return str(next(filter(None, reversed(named)), "classification"))


def _has_own_training(method: str) -> bool:
    # Imported here, because it imports Keras.
    from tf_adapters import methods

    cls = methods.METHODS[presets.complete({"name": method})["name"]]
    return cls.own_training is not methods.Method.own_training
