"""Trains a text model on a table in one call, as `tf-adapters train` does."""

from __future__ import annotations

from collections.abc import Sequence
import os
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.launch import table_settings
from tf_adapters.launch import tables
from tf_adapters.launch.python_words import errors_in_python
from tf_adapters.launch.python_words import say_in_python
from tf_adapters.runs import earlier_runs
from tf_adapters.runs import remote_folder
from tf_adapters.runs import summary
from tf_adapters.runs import task_data
from tf_adapters.runs import whole_run
from tf_adapters.text import columns
from tf_adapters.text import defaults
from tf_adapters.text import loading

if TYPE_CHECKING:
    from tf_adapters.methods.method import Method
    from tf_adapters.text.text_model import TextModel


def train(
    data: Any,
    text: str | Sequence[str] = "text",
    label: str = "label",
    method: str | Method = defaults.METHOD,
    encoder: str = "minilm",
    head: str | None = None,
    validation: Any = None,
    test: Any = None,
    model_dir: str | os.PathLike[str] | None = None,
    epochs: int | None = None,
    learning_rate: float | None = None,
    batch_size: int | None = None,
    max_length: int | None = None,
    seed: int = 0,
    settings: dict[str, Any] | None = None,
    overwrite: bool = False,
) -> TextModel:
    """Trains an adapter on a table of texts and labels. Returns a `TextModel`.

    Equivalent to `tf-adapters train --data=...` with the same settings. The
    classes are the labels in the table. Without `validation`, a tenth of each
    class is held out for validation. Without `epochs`, the epochs are those of
    the method's preset, and training takes at least 200 steps. The run folder
    is the same as the command's: calling the function again resumes a stopped
    run and loads a finished one.

    Args:
        data: Path of a `.csv`, `.tsv` or `.jsonl` file, or a table in memory: a
            `pandas.DataFrame`, a `datasets.Dataset`, a list of dicts, or a dict
            of columns. The texts and labels of a table in memory are written
            to `tables/` in the run folder.
        text: Name of the text column, or a list of names: two for pairs, three
            for triples. Defaults to `"text"`.
        label: Name of the label column. Defaults to `"label"`.
        method: Name of a method or a preset (see `--list=methods`), or a method
            such as `methods.LoRA(rank=4)`. Defaults to `"pfeiffer"`.
        encoder: Name, folder or address of an encoder (see `load_encoder`).
            Defaults to `"minilm"`.
        head: `"classification"` (default) if the labels are classes,
            `"regression"` if they are numbers, or another head that `--head`
            lists. Without labels, `"sentence_ranking"` trains on pairs.
        validation: Table to validate on, in any format that `data` supports.
            Default: `None`, which holds out training rows.
        test: Table to test on, in any format that `data` supports. Rows
            without a label are not tested on. Default: `None`, which evaluates
            no test split.
        model_dir: Path of the run folder. Defaults to
            `runs/<table>_<method>_<seed>`. A table in memory is named `table`.
        epochs: Number of passes over the training rows.
        learning_rate: Peak learning rate. The default for short runs depends
            on the method.
        batch_size: Number of texts per training step. Defaults to 32.
        max_length: Maximum length of a text in tokens. Defaults to 128.
        seed: Integer that seeds the choice of validation rows, the initial
            weights, the order of rows, and dropout. Defaults to 0.
        settings: Dict of any other settings, nested or with dotted names, such
            as `{"train.precision": "mixed_bfloat16"}`. Settings that have an
            argument, such as `seed`, must not differ from it.
        overwrite: Whether to replace another run in `model_dir`. Defaults to
            `False`.

    Returns:
        `TextModel` with the weights that were best on validation.
        `model.run_folder` is the path of the run folder. Its `result.json` has
        the metrics.

    Raises:
        UserError: If a column, a text or a label is missing, there are fewer
            than two classes, labels of a classification are fractional
            numbers, or `model_dir` holds another run.

    Examples:
        >>> rows = [
        ...     {"text": f"film {i}", "label": "odd" if i % 2 else "even"}
        ...     for i in range(20)
        ... ]
        >>> model = tf_adapters.train(
        ...     rows, encoder="minilm", epochs=1, model_dir="runs/films"
        ... )  # doctest: +ELLIPSIS
        validation: 2 of 20 rows, drawn from each class with the seed ...
        >>> model.run_folder.name
        'films'
    """
    layers = table_settings.layers_of_arguments(
        settings,
        method,
        encoder=encoder,
        seed=seed,
        text=columns.names_of(text),
        label=str(label),
        head=head,
        epochs=epochs,
        learning_rate=learning_rate,
        batch_size=batch_size,
        max_length=max_length,
    )
    given = {"data": data, "validation": validation, "test": test}
    head = defaults.head_of(layers)
    with tables.as_files(given, text, label, head) as source:
        return _train(layers, source, model_dir, overwrite)


def _train(
    layers: list[dict[str, Any]],
    source: tables.TableFiles,
    model_dir: str | os.PathLike[str] | None,
    overwrite: bool,
) -> TextModel:
    """Trains a run on tables, unless it is already finished; loads its model.

    Args:
        layers: Nested dicts of settings. Later ones override earlier ones.
        source: `TableFiles` of the run's tables.
        model_dir: See `train`.
        overwrite: See `train`.
    """
    with errors_in_python(source.names):
        config, folder = table_settings.config_and_folder(
            layers, source, model_dir
        )
        data = task_data.load_task_data(config)
        config = source.moved_to(folder, config)
        result = None
        if not overwrite and folder.exists():
            result = earlier_runs.finished_result(
                folder, config, data.fingerprints
            )
        summary.print_labels(data.task, data.rows, config, say_in_python)
        if result is None:
            summary.print_plan(config, data.rows, say_in_python)
            result = whole_run.train_run(
                *(config, data, folder),
                overwrite=overwrite,
                tables=source.paths,
            )
        else:
            print(
                f"{remote_folder.address(folder)} holds this run, which has "
                "finished."
            )
        summary.print_run(result, config, folder)
        return loading.load(folder)
