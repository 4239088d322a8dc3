"""The space of the search without an encoder: choices and ranges."""

import numbers

from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import shown
from tf_adapters.papers.baselines import no_bert_model


def check_space(space):
    """Raises `ConfigError` unless each setting has a list or a range.

    Args:
        space: Dict from each of `no_bert_model.SETTINGS` to a list of values,
            or to a range: a dict with `low`, `high` and perhaps `log`.
    """
    differ = set(space) ^ set(no_bert_model.SETTINGS)
    if differ:
        raise ConfigError(
            f"`search.space` must have {', '.join(no_bert_model.SETTINGS)}, as "
            "official_configs/methods/no_bert.yaml has them. It lacks, or has "
            f"beside them: {', '.join(sorted(differ))}"
        )
    for name, values in space.items():
        if not (_is_choice(values) or _is_range(values)):
            raise ConfigError(
                f"`search.space.{name}` must be a list of values ([64] for one "
                "alone), or a range, {low: 0.1, high: 0.5}, log: true if it "
                f"is even in the logarithm. Received: {shown(values)}"
            )


def _is_choice(values):
    return isinstance(values, list | tuple) and len(values) > 0


def _is_range(values):
    if not isinstance(values, dict) or values.keys() - {"low", "high", "log"}:
        return False
    low, high = values.get("low"), values.get("high")
    if not all(isinstance(end, numbers.Real) for end in (low, high)):
        return False
    return low <= high and (low > 0 or not values.get("log"))


def suggest(trial, space):
    """Returns a trial's settings: of a list one value, of a range a number."""
    return {
        name: trial.suggest_categorical(name, values)
        if _is_choice(values)
        else trial.suggest_float(name, **values)
        for name, values in space.items()
    }
