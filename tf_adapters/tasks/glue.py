"""GLUE's nine tasks, one of them (WNLI) left out by most papers.

Fields, label names and splits are those of TensorFlow Datasets 4.9. The first
metric of each is the one of Houlsby et al. 2019, table 1, and He et al. 2021,
table 2; WNLI is in neither and is scored by accuracy, as GLUE scores it. The
columns under `glue` are those of the files of the official download.
"""

from tf_adapters.tasks.task import GlueLayout
from tf_adapters.tasks.task import Task

_CITE = "Wang et al. 2019, arXiv:1804.07461, table 1"
_SPLITS = {"train": "train", "validation": "validation"}
_TEST = {"test": "test"}
_PAIR = ("sentence1", "sentence2")
_ENTAILMENT = ("entailment", "not_entailment")

COLA = Task(
    name="cola",
    source="glue/cola",
    text_fields=("sentence",),
    labels=("unacceptable", "acceptable"),
    splits=_SPLITS,
    head="classification",
    metrics=("matthews", "accuracy"),
    cite=_CITE,
    unlabelled_splits=_TEST,
    glue=GlueLayout(
        folder="CoLA",
        columns=("sentence",),
        headerless_columns=("source", "label", "star", "sentence"),
    ),
)

SST2 = Task(
    name="sst2",
    source="glue/sst2",
    text_fields=("sentence",),
    labels=("negative", "positive"),
    splits=_SPLITS,
    head="classification",
    metrics=("accuracy",),
    cite=_CITE,
    unlabelled_splits=_TEST,
    glue=GlueLayout(folder="SST-2", columns=("sentence",)),
)

MRPC = Task(
    name="mrpc",
    source="glue/mrpc",
    text_fields=_PAIR,
    labels=("not_equivalent", "equivalent"),
    splits=_SPLITS,
    head="classification",
    metrics=("f1", "accuracy"),
    cite=_CITE,
    unlabelled_splits=_TEST,
    glue=GlueLayout(
        folder="MRPC",
        columns=("#1 String", "#2 String"),
        label_column="Quality",
    ),
)

STSB = Task(
    name="stsb",
    source="glue/stsb",
    text_fields=_PAIR,
    labels=(),
    splits=_SPLITS,
    head="regression",
    metrics=("spearman", "pearson"),
    cite=_CITE,
    label_range=(0.0, 5.0),
    unlabelled_splits=_TEST,
    glue=GlueLayout(folder="STS-B", columns=_PAIR, label_column="score"),
)

QQP = Task(
    name="qqp",
    source="glue/qqp",
    text_fields=("question1", "question2"),
    labels=("not_duplicate", "duplicate"),
    splits=_SPLITS,
    head="classification",
    metrics=("f1", "accuracy"),
    cite=_CITE,
    aliases={"question1": "sentence1", "question2": "sentence2"},
    unlabelled_splits=_TEST,
    # The published train.tsv has a few broken lines; TensorFlow Datasets
    # (text/glue.py, "Filter out corrupted rows") leaves them out as well.
    glue=GlueLayout(
        folder="QQP",
        columns=("question1", "question2"),
        label_column="is_duplicate",
        skip_broken_lines=True,
    ),
)

MNLI = Task(
    name="mnli",
    source="glue/mnli",
    text_fields=("premise", "hypothesis"),
    labels=("entailment", "neutral", "contradiction"),
    splits={
        "train": "train",
        "validation": "validation_matched",
        "validation_mismatched": "validation_mismatched",
    },
    head="classification",
    metrics=("accuracy",),
    cite=_CITE,
    aliases={"premise": "sentence1", "hypothesis": "sentence2"},
    unlabelled_splits={
        "test": "test_matched",
        "test_mismatched": "test_mismatched",
    },
    glue=GlueLayout(folder="MNLI", columns=_PAIR, label_column="gold_label"),
)

QNLI = Task(
    name="qnli",
    source="glue/qnli",
    text_fields=("question", "sentence"),
    labels=_ENTAILMENT,
    splits=_SPLITS,
    head="classification",
    metrics=("accuracy",),
    cite=_CITE,
    unlabelled_splits=_TEST,
    glue=GlueLayout(folder="QNLI", columns=("question", "sentence")),
)

RTE = Task(
    name="rte",
    source="glue/rte",
    text_fields=_PAIR,
    labels=_ENTAILMENT,
    splits=_SPLITS,
    head="classification",
    metrics=("accuracy",),
    cite=_CITE,
    unlabelled_splits=_TEST,
    glue=GlueLayout(folder="RTE", columns=_PAIR),
)

WNLI = Task(
    name="wnli",
    source="glue/wnli",
    text_fields=_PAIR,
    labels=("not_entailment", "entailment"),
    splits=_SPLITS,
    head="classification",
    metrics=("accuracy",),
    cite=_CITE,
    unlabelled_splits=_TEST,
    glue=GlueLayout(folder="WNLI", columns=_PAIR),
)

GLUE = (COLA, SST2, MRPC, STSB, QQP, MNLI, QNLI, RTE, WNLI)
