"""The temperature of a run's head, fitted when its weights are trained."""

import dataclasses

from tf_adapters import heads
from tf_adapters.common.errors import ConfigError
from tf_adapters.heads.temperature import fit_temperature


def check(config, head):
    """Refuses a configuration whose temperature cannot be fitted.

    Args:
        config: `Config`.
        head: `Head` of the run.

    Raises:
        ConfigError: If it is to be, and the head has none or a given one.
    """
    if not config.train.calibrate:
        return
    if not head.has_temperature:
        raise ConfigError(
            "`train.calibrate` fits the temperature of a classification, and "
            f"this run's head is a {heads.name_of(head)}. Leave it out."
        )
    if "temperature" in (config.head or {}):
        raise ConfigError(
            "`train.calibrate` fits `head.temperature`, which is given too. "
            "Leave one of the two out."
        )


def calibrate(experiment, validation):
    """Gives the model's head its temperature; returns what is predicted then.

    Args:
        experiment: `Experiment` with the weights that are kept.
        validation: `Examples`.
    """
    outputs = experiment.trainer.predict(validation)
    head = experiment.model.head
    temperature = fit_temperature(outputs, validation.targets)
    print(f"temperature: {temperature:.4g}", flush=True)
    experiment.model.head = dataclasses.replace(head, temperature=temperature)
    return experiment.model.head.compare(
        outputs, validation.targets, validation.source
    )
