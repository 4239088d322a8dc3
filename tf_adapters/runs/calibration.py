"""Fits the temperature of a run's head after training."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters import heads
from tf_adapters.common.errors import ConfigError
from tf_adapters.heads.temperature import fit_temperature

if TYPE_CHECKING:
    from tf_adapters.heads.head import Head
    from tf_adapters.runs.experiment import Experiment


def check_calibration(head: Head, settings: dict[str, Any] | None) -> None:
    """Raises an error if a run cannot use the setting `train.calibrate`.

    Args:
        head: `Head` of the run.
        settings: Dict of the head's settings in the configuration, or `None`.

    Raises:
        ConfigError: If the head has no temperature, or the configuration
            already sets the temperature.
    """
    if not head.has_temperature:
        raise ConfigError(
            "`train.calibrate` fits the temperature of a classification, but "
            f"this run's head is a {heads.name_of(head)}. Leave it out."
        )
    if "temperature" in (settings or {}):
        raise ConfigError(
            "`train.calibrate` fits `head.temperature`, which is given too. "
            "Leave one of the two out."
        )


def calibrate(experiment: Experiment, validation: Any) -> Any:
    """Fits the temperature of a run's head to the validation split.

    Args:
        experiment: `Experiment` with the best weights. The head of its model
            is replaced with a copy that has the temperature.
        validation: `Examples` of the validation split.

    Returns:
        Predictions and labels of the validation split: the dict of lists that
        the new head's `compare` returned.
    """
    outputs = experiment.trainer.predict(validation)
    head = experiment.model.head
    temperature = fit_temperature(outputs, validation.targets)
    print(f"temperature: {temperature:.4g}", flush=True)
    experiment.model.head = dataclasses.replace(head, temperature=temperature)
    return experiment.model.head.compare(
        outputs, validation.targets, validation.source
    )
