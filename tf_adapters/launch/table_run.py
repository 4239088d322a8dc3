"""One call from a table to a trained text model, as the command trains it."""

from tf_adapters.data.rows import sampling
from tf_adapters.data.rows import splits
from tf_adapters.launch import table_settings
from tf_adapters.launch import tables
from tf_adapters.launch.python_words import errors_in_python
from tf_adapters.launch.python_words import say_in_python
from tf_adapters.runs import earlier_runs
from tf_adapters.runs import remote_folder
from tf_adapters.runs import summary
from tf_adapters.runs import whole_run
from tf_adapters.text import loading


def train(
    data,
    text="text",
    label="label",
    method="pfeiffer",
    encoder="minilm",
    head=None,
    validation=None,
    test=None,
    output_dir=None,
    epochs=None,
    learning_rate=None,
    batch_size=None,
    max_length=None,
    seed=0,
    settings=None,
    overwrite=False,
):
    """Trains an adapter on a table of texts and labels, and returns its model.

    It does what `tf-adapters train --data=...` does with the same settings:
    the classes are the labels that occur, a tenth of each class validates
    unless `validation` is given, and there are at least 200 steps unless
    `epochs` is given. The run folder is the same, too: the same call resumes a
    run that was stopped, and loads one that is finished.

    Args:
        data: Path of a `.csv`, `.tsv` or `.jsonl` file; or a table in memory: a
            `pandas.DataFrame`, a `datasets.Dataset`, a list of dicts, or a dict
            of columns. The texts and labels of a table in memory are written
            to `tables/` in the run folder.
        text: Name of the column of texts, or a list of two. Defaults to
            `"text"`.
        label: Name of the column of labels. Defaults to `"label"`.
        method: Name of a method or a preset, see `--list=methods`; or a method,
            `methods.LoRA(rank=4)`. Defaults to `"pfeiffer"`.
        encoder: Name, folder or address, see `load_encoder`. Defaults to
            `"minilm"`.
        head: `"classification"` (default), where labels are classes, or
            `"regression"`, where they are numbers.
        validation: Table to validate on, as `data`.
        test: Table to test on, as `data`; `None` (default) for no test.
        output_dir: Run folder. Defaults to `runs/<table>_<method>_<seed>`;
            a table in memory is called `table`.
        epochs: Passes over the training rows.
        learning_rate: Highest learning rate. Default: one for short runs, by
            method.
        batch_size: Texts in a step. Defaults to 32.
        max_length: Longest text in tokens. Defaults to 128.
        seed: Integer, 0 by default: validation rows, initial weights, order and
            dropout.
        settings: Dict of any other settings, nested or with dots, as in
            `{"train.precision": "mixed_bfloat16"}`.
        overwrite: Whether to replace another run in `output_dir`. Defaults to
            `False`.

    Returns:
        `TextModel` with the best weights on validation. `model.run_folder` is
        the path of the run folder; its `result.json` has the metrics.

    Raises:
        UserError: If a column, a text or a label is missing, there are fewer
            than two classes, numbers with a fraction are to be classes, or
            `output_dir` holds another run.

    Examples:
        >>> rows = [
        ...     {"text": f"film {i}", "label": "odd" if i % 2 else "even"}
        ...     for i in range(20)
        ... ]
        >>> model = tf_adapters.train(
        ...     rows, encoder="minilm", epochs=1, output_dir="runs/films"
        ... )  # doctest: +ELLIPSIS
        validation: 2 of 20 rows, drawn from each class with the seed ...
        >>> model.run_folder.name
        'films'
    """
    layers = table_settings.layers_of(
        settings,
        method,
        encoder=encoder,
        seed=seed,
        head=head,
        epochs=epochs,
        learning_rate=learning_rate,
        batch_size=batch_size,
        max_length=max_length,
    )
    given = {"data": data, "validation": validation, "test": test}
    with tables.as_files(given, text, label) as source:
        return _train(layers, source, output_dir, overwrite)


def _train(layers, source, output_dir, overwrite):
    """Trains what layers of settings say, unless that is done; loads it."""
    with errors_in_python(source.names):
        config, folder = table_settings.resolve(layers, source, output_dir)
        task = splits.get_task(config)
        rows = splits.load_rows(config, task)
        config = source.moved_to(folder, config)
        result = None
        if not overwrite and folder.exists():
            fingerprint = sampling.fingerprints(rows)
            result = earlier_runs.finished(folder, config, fingerprint)
        summary.print_labels(task, rows, say_in_python)
        if result is None:
            summary.print_plan(config, rows, say_in_python)
            result = whole_run.train_run(
                *(config, task, rows, folder),
                overwrite=overwrite,
                tables=source.paths,
            )
        else:
            print(f"{remote_folder.address(folder)} holds this run, finished.")
        summary.print_run(result, config, folder)
        return loading.load(folder)
