"""Searches for the best settings for a table, as `tf-adapters tune` does."""

from __future__ import annotations

from collections.abc import Sequence
import os
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.checks import is_integer
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import shown
from tf_adapters.launch import table_settings
from tf_adapters.launch import tables
from tf_adapters.launch import trial_settings
from tf_adapters.launch import tuning
from tf_adapters.launch.python_words import errors_in_python
from tf_adapters.text import columns
from tf_adapters.text import defaults
from tf_adapters.text import loading

if TYPE_CHECKING:
    from tf_adapters.text.text_model import TextModel


def tune(
    data: Any,
    text: str | Sequence[str] = "text",
    label: str = "label",
    trials: int = 20,
    methods: Sequence[str] = trial_settings.METHODS,
    encoder: str = "minilm",
    head: str | None = None,
    validation: Any = None,
    model_dir: str | os.PathLike[str] | None = None,
    epochs: int | None = None,
    batch_size: int | None = None,
    max_length: int | None = None,
    seed: int = 0,
    settings: dict[str, Any] | None = None,
    overwrite: bool = False,
) -> TextModel:
    """Searches for the settings that work best for a table of data.

    Equivalent to `tf-adapters tune --data=...`. Optuna chooses the method, the
    learning rate and the adapter size. Each trial is a run in the subfolder
    `trials` of `model_dir`. The function returns the text model of the run with
    the best validation metric. Calling the function again resumes a stopped
    search. Requires `pip install 'tf_adapters[search]'`.

    Args:
        data: See `train`.
        text: See `train`.
        label: See `train`.
        trials: Number of trials, including those already in `model_dir`.
            Defaults to 20.
        methods: Names of the methods to search among. Defaults to
            `("pfeiffer", "houlsby", "lora")`.
        encoder: See `train`.
        head: See `train`.
        validation: See `train`.
        model_dir: Path of the search's folder. Defaults to
            `runs/<table>_tune_<seed>`.
        epochs: See `train`.
        batch_size: See `train`.
        max_length: See `train`.
        seed: See `train`.
        settings: See `train`. Settings that are given here, such as a learning
            rate or a size, are not searched.
        overwrite: Whether to remove an earlier search. Defaults to `False`.

    Returns:
        `TextModel` of the best trial. `model.run_folder` is its run folder.

    Raises:
        UserError: See `train`. Also if `trials` is less than 1, Optuna is not
            installed, `model_dir` holds another search, or all trials failed.

    Examples:
        >>> rows = [
        ...     {"text": f"film {i}", "label": "odd" if i % 2 else "even"}
        ...     for i in range(20)
        ... ]
        >>> model = tf_adapters.tune(
        ...     rows, trials=1, methods=["lora"], epochs=1
        ... )  # doctest: +ELLIPSIS
        validation: 2 of 20 rows, drawn from each class with the seed ...
        >>> model.run_folder.parts[-2:]
        ('trials', '001')
    """
    if not is_integer(trials) or trials < 1:
        raise ConfigError(
            "`trials` must be a whole number from 1, the number of runs. "
            f"Received: {shown(trials)}"
        )
    layers = table_settings.layers_of_arguments(
        settings,
        method=None,
        encoder=encoder,
        seed=seed,
        text=columns.names_of(text),
        label=str(label),
        head=head,
        epochs=epochs,
        batch_size=batch_size,
        max_length=max_length,
    )
    given = {"data": data, "validation": validation}
    head = defaults.head_of(layers)
    with (
        tables.as_files(given, text, label, head) as source,
        errors_in_python(source.names),
    ):
        best = tuning.search_settings(
            *([*layers, source.layer], model_dir, trials, methods, overwrite),
            source=source,
        )
        return loading.load(best.folder)
