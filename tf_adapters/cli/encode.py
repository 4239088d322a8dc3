"""`tf-adapters encode RUN`: writes the vectors of texts to a NumPy file."""

from __future__ import annotations

from collections.abc import Sequence
import contextlib
import dataclasses
import io
import itertools
from pathlib import Path
import sys
from typing import TYPE_CHECKING
from typing import Any

import numpy as np

from tf_adapters.cli.command import Command
from tf_adapters.cli.command import on_run
from tf_adapters.common import own_files
from tf_adapters.common.errors import ConfigError
from tf_adapters.config import task as config_task
from tf_adapters.data.rows import files
from tf_adapters.data.rows import load
from tf_adapters.data.rows import typed_rows

if TYPE_CHECKING:
    from tf_adapters.config.settings import Config
    from tf_adapters.tasks.task import Task


_STDIN = "-"
# The field that a line of text is read as.
_TEXT = "text"


def run_encode(
    options: Any, layer: dict[str, Any], arguments: Sequence[str]
) -> Any:
    """Computes the vectors of texts with a run; returns the exit status.

    See `Command.run` for the arguments.
    """
    from tf_adapters.cli import main

    return main.run_command(layer, on_run("encode", options, arguments))


def encode_file(config: Config, model_dir: Path, options: Any) -> None:
    """Computes vectors for the rows of a file; writes them to an `.npy` file.

    The options `input` and `output` name the files.

    Args:
        config: `Config` of the run.
        model_dir: Path of the run folder.
        options: See `main.run_command`.

    Raises:
        ConfigError: If the encoder needs several inputs for a row, for example
            for the windows of a long text with a question.
    """
    task = config_task.declared_task(config)
    if options.input == _STDIN:
        task, rows = _standard_input(task, options)
    else:
        task = _task(task, options, options.input.endswith(".txt"))
        rows = load.load_file(task, options.input)
    vectors = _vectors(config, model_dir, rows, task)
    content = io.BytesIO()
    np.save(content, vectors)
    output = Path(options.output)
    output.parent.mkdir(parents=True, exist_ok=True)
    own_files.replace_file(output, content.getvalue())
    shape = " x ".join(map(str, vectors.shape))
    print(f"{shape} numbers in {output}", file=sys.stderr)


def _standard_input(task: Task, options: Any) -> tuple[Task, list[Any]]:
    """Reads standard input. Returns a task with the fields to encode, and rows.

    If the task reads several texts, each line is an object with all of them,
    an object with a `text`, or a text, as the first line is.
    """
    alone = _task(task, options, has_lines=True)
    origin = "standard input"
    if options.column or task.list_field or len(task.text_fields) == 1:
        return alone, load.load_stream(alone, sys.stdin.buffer, origin)
    field = task.text_fields[0]
    named = task.aliases.get(field, field)
    table = files.open_stream(sys.stdin.buffer, origin, _TEXT, named)
    rows = iter(table.rows)
    first = list(itertools.islice(rows, 1))
    read = task if first and _TEXT not in first[0][1] else alone
    table = dataclasses.replace(table, rows=itertools.chain(first, rows))
    return read, typed_rows.typed_rows(table, read, "ignored")


def _task(task: Task, options: Any, has_lines: bool) -> Task:
    """Returns a copy of the run's task with the text fields to encode.

    If the option `column` is given, it names the only text field.

    Args:
        task: The run's `Task`.
        options: See `main.run_command`.
        has_lines: Whether each line of the input is a text.

    Raises:
        ConfigError: If `column` is given, but a field of the task holds lists,
            such as lists of words.
    """
    column = options.column
    if column is not None and task.list_field:
        raise ConfigError(
            f"A run of the kind {task.head} reads the field "
            f"`{task.list_field}`, which holds lists: --column names a column "
            "with texts. Leave it out, or encode with another run."
        )
    if column is None and has_lines and len(task.text_fields) > 1:
        column = _TEXT
    if column is None or task.list_field:
        return task
    # Labels are not read, so any column may be encoded, theirs too.
    label = "" if column == task.label_field else task.label_field
    return dataclasses.replace(
        task, text_fields=(column,), aliases={}, id_field="", label_field=label
    )


def _vectors(
    config: Config,
    model_dir: Path,
    rows: list[dict[str, Any]],
    task: Task,
) -> np.ndarray:
    from tf_adapters.runs import finished_run
    from tf_adapters.text import vectors
    from tf_adapters.training.finite import check_outputs

    # Libraries may print messages when they download or load files.
    with contextlib.redirect_stdout(sys.stderr):
        experiment = finished_run.load_finished_run(config, task, model_dir)
        examples = experiment.examples(rows, labeled=False)
        if not vectors.are_single([examples], len(rows)):
            raise ConfigError(
                f"A run of the kind {task.head} reads some rows as several "
                "inputs, or empty ones as none, so they have no single vector. "
                "Raise --max_length, leave out empty texts, or encode with "
                "another run."
            )
        model = vectors.vectors_of(experiment.model)
        trainer = experiment.trainer_of(model, trained={})
        found = np.stack(trainer.predict(examples, "encoding"))
    check_outputs(found)
    return vectors.of_single_texts(found)


COMMAND = Command(
    name="encode",
    summary="Writes a vector for each text of a file, as an .npy of NumPy. "
    "Runs of a head that trains vectors give vectors of length 1; all others "
    "give the mean of a text's token vectors.",
    usage="RUN",
    examples=(
        "tf-adapters encode runs/x --input=texts.txt --output=vectors.npy",
        "tf-adapters encode runs/x --input=a.csv --column=body --output=b.npy",
    ),
    groups={
        "Data": ("input", "column", "output", "task_file"),
        "Settings": (
            *("max_length", "precision", "encoder", "stack_on", "adapters"),
            *("distribution_strategy", "tpu", "config_file", "quantize"),
            *("params_override", "plugin", "verbose"),
        ),
    },
    run=run_encode,
    defaults=dict.fromkeys(("encoder", "precision", "max_length"), "the run's"),
)
