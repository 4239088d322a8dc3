"""Checks that all workers of a cluster run the same training."""

from __future__ import annotations

import json
import os
import platform
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common import dataclass_config
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import shown
from tf_adapters.config import resolve
from tf_adapters.config import settings as config_settings
from tf_adapters.runs.provenance import provenance
from tf_adapters.training import workers

if TYPE_CHECKING:
    import tensorflow as tf

    from tf_adapters.config.settings import Config


def check_workers_agree(
    strategy: tf.distribute.Strategy, config: Config, fingerprints: Any
) -> None:
    """Checks that versions, settings and data are equal on all workers.

    Otherwise, workers would wait for each other forever, or train different
    models. If there are several workers, each must call this function.

    Args:
        strategy: `tf.distribute.Strategy`.
        config: `Config` of this worker.
        fingerprints: Dict from a split to the fingerprint of this worker's
            rows, or nested dict with such a dict for each task.

    Raises:
        ConfigError: On every worker, if two of them differ. Names the first
            difference.
    """
    mine = json.dumps(_facts(config, fingerprints)).encode()
    chief, *others = map(json.loads, workers.gather_bytes(strategy, mine))
    for number, other in enumerate(others, 1):
        _check_equal(chief, other, number)


def _check_equal(
    chief: dict[str, Any], other: dict[str, Any], number: int
) -> None:
    """Raises a `ConfigError` if a worker's facts are not the chief's."""
    for name in sorted({*chief, *other}):
        ours, theirs = chief.get(name), other.get(name)
        if ours != theirs:
            raise ConfigError(
                f"The workers of this cluster differ in {name}: "
                f"{shown(ours)} on worker 0, {shown(theirs)} on worker "
                f"{number}. Start the same command, with the same versions "
                "and data, on all workers."
            )


def _facts(config: Config, fingerprints: Any) -> dict[str, Any]:
    """Returns a flat dict of all that must be equal on the workers."""
    settings = dataclass_config.flatten(resolve.to_dict(config))
    versions = {**provenance()["versions"], "python": platform.python_version()}
    return {
        **{
            f"the setting `{key}`": _name(value)
            for key, value in settings.items()
            if key not in config_settings.ELSEWHERE
        },
        **{f"the version of {k}": version for k, version in versions.items()},
        "the data": fingerprints,
    }


def _name(value: Any) -> Any:
    """Returns a setting's value; of an absolute path, only the last part.

    Workers may keep the same files in different folders.
    """
    if isinstance(value, list | tuple):
        return [_name(one) for one in value]
    is_path = isinstance(value, str) and os.path.isabs(value)
    return os.path.basename(os.path.normpath(value)) if is_path else value
