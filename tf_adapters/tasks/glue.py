"""The nine tasks of GLUE, including WNLI, which most papers omit.

Fields, label names and splits are from TensorFlow Datasets 4.9. The first
metric of each task is from Houlsby et al. 2019, table 1, and He et al. 2021,
table 2. Neither table has WNLI, which is scored by accuracy, as in GLUE. The
names in each `GlueLayout` are from the files of the official download.
"""

from typing import Any

from tf_adapters.tasks.task import GlueLayout
from tf_adapters.tasks.task import Task

_PAIR = ("sentence1", "sentence2")
_ENTAILMENT = ("entailment", "not_entailment")


def _task(
    name: str, unlabeled_splits: dict[str, str] | None = None, **own: Any
) -> Task:
    return Task(
        name=name,
        source=f"glue/{name}",
        cite="Wang et al. 2019, arXiv:1804.07461, table 1",
        unlabeled_splits=unlabeled_splits or {"test": "test"},
        **own,
    )


COLA = _task(
    "cola",
    text_fields=("sentence",),
    labels=("unacceptable", "acceptable"),
    metrics=("matthews", "accuracy"),
    glue=GlueLayout(
        folder="CoLA",
        columns=("sentence",),
        headerless_columns=("source", "label", "star", "sentence"),
    ),
)

SST2 = _task(
    "sst2",
    text_fields=("sentence",),
    labels=("negative", "positive"),
    glue=GlueLayout(folder="SST-2", columns=("sentence",)),
)

MRPC = _task(
    "mrpc",
    text_fields=_PAIR,
    labels=("not_equivalent", "equivalent"),
    metrics=("f1", "accuracy"),
    glue=GlueLayout(
        folder="MRPC",
        columns=("#1 String", "#2 String"),
        label_column="Quality",
    ),
)

STSB = _task(
    "stsb",
    text_fields=_PAIR,
    head="regression",
    label_range=(0.0, 5.0),
    glue=GlueLayout(folder="STS-B", columns=_PAIR, label_column="score"),
)

QQP = _task(
    "qqp",
    text_fields=("question1", "question2"),
    labels=("not_duplicate", "duplicate"),
    metrics=("f1", "accuracy"),
    aliases={"question1": "sentence1", "question2": "sentence2"},
    # The published train.tsv has a few broken lines, which TensorFlow Datasets
    # (text/glue.py, "Filter out corrupted rows") also skips.
    glue=GlueLayout(
        folder="QQP",
        columns=("question1", "question2"),
        label_column="is_duplicate",
        skip_broken_lines=True,
    ),
)

MNLI = _task(
    "mnli",
    text_fields=("premise", "hypothesis"),
    labels=("entailment", "neutral", "contradiction"),
    splits={
        "train": "train",
        "validation": "validation_matched",
        "validation_mismatched": "validation_mismatched",
    },
    aliases={"premise": "sentence1", "hypothesis": "sentence2"},
    unlabeled_splits={
        "test": "test_matched",
        "test_mismatched": "test_mismatched",
    },
    glue=GlueLayout(folder="MNLI", columns=_PAIR, label_column="gold_label"),
)

QNLI = _task(
    "qnli",
    text_fields=("question", "sentence"),
    labels=_ENTAILMENT,
    glue=GlueLayout(folder="QNLI", columns=("question", "sentence")),
)

RTE = _task(
    "rte",
    text_fields=_PAIR,
    labels=_ENTAILMENT,
    glue=GlueLayout(folder="RTE", columns=_PAIR),
)

WNLI = _task(
    "wnli",
    text_fields=_PAIR,
    labels=("not_entailment", "entailment"),
    glue=GlueLayout(folder="WNLI", columns=_PAIR),
)

GLUE = (COLA, SST2, MRPC, STSB, QQP, MNLI, QNLI, RTE, WNLI)
