"""Makes the tables that `--list` prints."""

import textwrap
from typing import Any

from tf_adapters import tasks
from tf_adapters.cli import study
from tf_adapters.config import presets
from tf_adapters.report import content


def _text(header: Any, rows: Any) -> str:
    return content.as_text(content.ReportTable("", header, rows))


def list_tasks() -> str:
    """Returns a table of all tasks."""
    return _text(
        ("task", "kind", "classes", "metrics", "TensorFlow Datasets"),
        [
            (
                task.name,
                task.head,
                str(len(task.labels) or "-"),
                ", ".join(task.metrics),
                task.source or "local files only",
            )
            for task in tasks.TASKS.values()
        ],
    )


def list_methods() -> str:
    """Returns a table of all method presets, with a description of each.

    The descriptions are the comments in the presets' files.
    """
    rows = []
    for name in presets.preset_names():
        path = presets.PRESETS / f"{name}.yaml"
        comment = path.read_text(encoding="utf-8").split("\nmethod:")[0]
        comment = " ".join(line.lstrip("# ") for line in comment.split("\n"))
        rows.append((name, textwrap.shorten(comment, 110, placeholder=" ...")))
    return _text(("--method", "what it is"), rows)


def list_encoders() -> str:
    """Returns a table of the names of encoders, with a description of each."""
    from tf_adapters.encoders import load

    return _text(("--encoder", "what it is"), list(load.ENCODERS.items()))


TABLES = {
    "tasks": list_tasks,
    "methods": list_methods,
    "encoders": list_encoders,
    "studies": study.table_of_studies,
}
