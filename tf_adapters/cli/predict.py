"""`tf-adapters predict RUN [TEXT]`: predicts with a finished run.

Only the predictions are written to standard output.
"""

from __future__ import annotations

from collections.abc import Sequence
import contextlib
import json
from pathlib import Path
import sys
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.cli.command import Command
from tf_adapters.cli.command import on_run
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import cut
from tf_adapters.common.text_files import is_unicode
from tf_adapters.config import task as config_task
from tf_adapters.data.rows import load
from tf_adapters.data.rows import prediction_files
from tf_adapters.runs import pretraining_task

if TYPE_CHECKING:
    from tf_adapters.config.settings import Config
    from tf_adapters.tasks.task import Task


_STDIN = "-"


def run_predict(
    options: Any, layer: dict[str, Any], arguments: Sequence[str]
) -> Any:
    """Predicts for one text or for the rows of a file; returns the exit status.

    See `Command.run` for the arguments.
    """
    from tf_adapters.cli import main

    texts = arguments[1:] if not options.model_dir else arguments
    options = on_run(
        "predict", options, arguments[: len(arguments) - len(texts)]
    )
    if not texts:
        return main.run_command(layer, options)
    if options.input or options.glue_submission:
        raise ConfigError(
            "Give a text or --input, not both. Received: "
            f"{cut(' '.join(texts))}"
        )
    if options.output:
        raise ConfigError(
            "--output has an effect only with --input: the answer to a text in "
            "the command is printed. Leave --output out."
        )
    return main.run_command(layer, options, texts)


def answer_text(config: Config, model_dir: Path, texts: Any) -> None:
    """Predicts for one example, and prints the prediction as a line of JSON.

    Args:
        config: `Config` of the run.
        model_dir: Path of the run folder.
        texts: List with a string for each text field of the task.

    Raises:
        ConfigError: If the number of texts is wrong, or a text is not UTF-8.
    """
    task = config_task.declared_task(config, check_files=False)
    (answer,) = _answers(config, model_dir, [_row_of(texts, task)], task)
    print(json.dumps(answer, ensure_ascii=False))


def _row_of(texts: Any, task: Task) -> dict[str, Any]:
    fields = task.text_fields
    if task.list_field or len(texts) != len(fields):
        names = " and ".join(f"`{name}`" for name in fields)
        raise ConfigError(
            f"Task `{task.name}` reads {names}. After the run's folder, give a "
            "quoted text for each, and no list. Give anything else as "
            "--input=<file>. Received: "
            f"{cut(', '.join(map(repr, texts)))}"
        )
    for text in texts:
        # In arguments, Python turns undecodable bytes into lone surrogates.
        if not is_unicode(text):
            raise ConfigError(
                "The text is not in UTF-8, the encoding of this terminal. Give "
                "it in a file: --input=texts.txt."
            )
    row = dict(zip(fields, texts, strict=True))
    return {task.id_field: "0", **row} if task.id_field else row


def predict_file(config: Config, model_dir: Path, options: Any) -> None:
    """Predicts for each row of a file, of standard input, or of GLUE test sets.

    Writes the predictions to `options.output`, or to standard output. For GLUE,
    writes submission files to the folder `options.glue_submission`.

    Args:
        config: `Config` of the run.
        model_dir: Path of the run folder.
        options: See `main.run_command`.
    """
    if options.glue_submission:
        _submit(config, model_dir, options)
        return
    # The task's data are not needed, because the adapter has the class names.
    declared = config_task.declared_task(config)
    task = pretraining_task.task_of_run(declared, model_dir)
    if options.output:
        prediction_files.check_output_file(options.output, task)
    if options.input == _STDIN:
        rows = load.load_stream(declared, sys.stdin.buffer, "standard input")
    else:
        rows = load.load_file(declared, options.input)
    answers = _answers(config, model_dir, rows, declared)
    fields = [f for f in (declared.id_field, *declared.text_fields) if f]
    found = [
        {**{field: row[field] for field in fields}, **answer}
        for row, answer in zip(rows, answers, strict=True)
    ]
    if not options.output:
        print("\n".join(json.dumps(row, ensure_ascii=False) for row in found))
        return
    count = prediction_files.write_predictions(options.output, found, task)
    print(f"{count} predictions in {options.output}", file=sys.stderr)


def _answers(
    config: Config,
    model_dir: Path,
    rows: list[dict[str, Any]],
    task: Task,
) -> list[Any]:
    from tf_adapters.runs import finished_run

    # Libraries may print messages when they download or load files.
    with contextlib.redirect_stdout(sys.stderr):
        experiment = finished_run.load_finished_run(config, task, model_dir)
        return experiment.predict(rows)


def _submit(config: Config, model_dir: Path, options: Any) -> None:
    from tf_adapters.export import glue

    for path in glue.export_submission(
        config, model_dir, options.glue_submission
    ):
        print(f"GLUE submission: {path}")


COMMAND = Command(
    name="predict",
    summary="Predicts with a finished run, for one text in the command or "
    "many in --input. Prints one line of JSON for each.",
    usage='RUN ["TEXT" ["SECOND TEXT"]]',
    examples=(
        'tf-adapters predict runs/reviews_pfeiffer_0 "a fine film"',
        'tf-adapters predict runs/reviews_pfeiffer_0 -- "- starts with a dash"',
        "tf-adapters predict runs/x --input=new.csv --output=answers.csv",
        "cat texts.txt | tf-adapters predict runs/x --input=-",
    ),
    groups={
        "Data": ("input", "output", "glue_submission", "data_dir", "task_file"),
        "Settings": (
            *("max_length", "precision", "encoder", "stack_on", "adapters"),
            *("distribution_strategy", "tpu", "config_file", "quantize"),
            *("params_override", "plugin", "verbose"),
        ),
    },
    run=run_predict,
    defaults=dict.fromkeys(
        ("encoder", "precision", "max_length", "data_dir"), "the run's"
    ),
)
