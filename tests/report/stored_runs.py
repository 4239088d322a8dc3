"""Writes folders of finished runs, without a model."""

import json

import yaml

from tests import commands
from tf_adapters import heads
from tf_adapters.config import resolve
from tf_adapters.data.rows import sampling
from tf_adapters.runs import predictions
from tf_adapters.runs import task_data

HAM = heads.Classification(("ham", "spam"))


def write(folder, head, rows, compared, **result):
    """Writes a run whose test split has these rows; returns its folder.

    Args:
        folder: Path.
        head: `Head`.
        rows: List of dicts of a `text` and a `label`, as in files.
        compared: The run's predictions, or `None`.
        **result: More of `result.json`.
    """
    for name in ("train", "dev", "test"):
        commands.write_rows(folder / "data" / f"{name}.jsonl", rows)
    task = {
        "name": "mail",
        "head": heads.name_of(head),
        "text_fields": [key for key in rows[0] if key != "label"],
        "label_field": "label",
        "files": {
            "train": "data/train.jsonl",
            "validation": "data/dev.jsonl",
            "test": "data/test.jsonl",
        },
    }
    if head.labels:
        task["labels"] = list(head.labels)
    (folder / "mail.yaml").write_text(yaml.safe_dump(task))
    run = folder / "run"
    run.mkdir()
    settings = {
        "task": "mail",
        "method": "houlsby",
        "data": {"task_file": str(folder / "mail.yaml")},
    }
    (run / "config.yaml").write_text(yaml.safe_dump(settings))
    config = resolve.resolve_config(settings)
    read = task_data.load_task_data(config).rows
    result = {
        "task": "mail",
        "data_fingerprint": sampling.fingerprints(read),
        **result,
    }
    (run / "result.json").write_text(json.dumps(result))
    if compared is not None:
        predictions.save_predictions(run, "test", head, compared)
    return run


def mails(count_ham, count_spam):
    """Returns rows of two classes, the first of them ham."""
    labels = ["ham"] * count_ham + ["spam"] * count_spam
    return [
        {"text": f"mail {i}", "label": label} for i, label in enumerate(labels)
    ]
