"""Fits the temperature of a run's head after its weights are trained."""

import dataclasses

from tf_adapters import heads
from tf_adapters.common.errors import ConfigError
from tf_adapters.heads.temperature import fit_temperature


def check(config, head):
    """Raises an error if `train.calibrate` is set and cannot be followed.

    Args:
        config: `Config`.
        head: `Head` of the run.

    Raises:
        ConfigError: If `train.calibrate` is set, but the head has no
            temperature, or the configuration gives one.
    """
    if not config.train.calibrate:
        return
    if not head.has_temperature:
        raise ConfigError(
            "`train.calibrate` fits the temperature of a classification, but "
            f"this run's head is a {heads.name_of(head)}. Leave it out."
        )
    if "temperature" in (config.head or {}):
        raise ConfigError(
            "`train.calibrate` fits `head.temperature`, which is given too. "
            "Leave one of the two out."
        )


def calibrate(experiment, validation):
    """Fits the head's temperature and returns the new predictions.

    Args:
        experiment: `Experiment` with the best weights. Its model's head is
            replaced with one that has the temperature.
        validation: `Examples` of the validation split.

    Returns:
        What `compare` of the new head returns on the validation split.
    """
    outputs = experiment.trainer.predict(validation)
    head = experiment.model.head
    temperature = fit_temperature(outputs, validation.targets)
    print(f"temperature: {temperature:.4g}", flush=True)
    experiment.model.head = dataclasses.replace(head, temperature=temperature)
    return experiment.model.head.compare(
        outputs, validation.targets, validation.source
    )
