"""The eight tasks of TAE: Gururangan et al. 2020, as used by He et al. 2021.

He et al. 2021, table 1, reports micro-F1 for CHEMPROT and RCT and macro-F1 for
the others. The field of the text in local files is `sentence`, or `text` as in
the files from Gururangan et al.
"""

from tf_adapters.tasks.task import THREE_SPLITS
from tf_adapters.tasks.task import Task

_CITE = "He et al. 2021, arXiv:2106.03164, section 3.1 and table 1"
_MICRO = ("micro_f1", "macro_f1", "accuracy")
_MACRO = ("macro_f1", "accuracy")


def _local_task(
    name: str, labels: tuple[str, ...], metrics: tuple[str, ...]
) -> Task:
    return Task(
        name=name,
        text_fields=("sentence",),
        labels=labels,
        splits=THREE_SPLITS,
        metrics=metrics,
        cite=_CITE,
        aliases={"sentence": "text"},
    )


CHEMPROT = _local_task(
    "chemprot",
    (
        "ACTIVATOR",
        "AGONIST",
        "AGONIST-ACTIVATOR",
        "AGONIST-INHIBITOR",
        "ANTAGONIST",
        "DOWNREGULATOR",
        "INDIRECT-DOWNREGULATOR",
        "INDIRECT-UPREGULATOR",
        "INHIBITOR",
        "PRODUCT-OF",
        "SUBSTRATE",
        "SUBSTRATE_PRODUCT-OF",
        "UPREGULATOR",
    ),
    _MICRO,
)

ACL_ARC = _local_task(
    "acl_arc",
    (
        "Background",
        "CompareOrContrast",
        "Extends",
        "Future",
        "Motivation",
        "Uses",
    ),
    _MACRO,
)

SCIERC = _local_task(
    "scierc",
    (
        "COMPARE",
        "CONJUNCTION",
        "EVALUATE-FOR",
        "FEATURE-OF",
        "HYPONYM-OF",
        "PART-OF",
        "USED-FOR",
    ),
    _MACRO,
)

# Only the body is read; the title is ignored if a file has one.
HYPERPARTISAN = _local_task("hyperpartisan", ("false", "true"), _MACRO)

RCT = _local_task(
    "rct",
    ("BACKGROUND", "OBJECTIVE", "METHODS", "RESULTS", "CONCLUSIONS"),
    _MICRO,
)

HELPFULNESS = _local_task("helpfulness", ("unhelpful", "helpful"), _MACRO)

# TAE trains on 115k of the 120k training rows and validates on the remainder.
AGNEWS = Task(
    name="agnews",
    source="ag_news_subset",
    text_fields=("title", "description"),
    labels=("World", "Sports", "Business", "Sci/Tech"),
    splits={
        "train": "train[:115000]",
        "validation": "train[115000:]",
        "test": "test",
    },
    metrics=_MACRO,
    cite=_CITE,
    aliases={"description": "sentence"},
    optional_fields=("title",),
)

# TAE trains on 20k of the 25k training rows and validates on the remainder. It
# is also a task of Pfeiffer et al. 2021, arXiv:2005.00247, scored by accuracy.
IMDB = Task(
    name="imdb",
    source="imdb_reviews/plain_text",
    text_fields=("text",),
    labels=("neg", "pos"),
    splits={
        "train": "train[:20000]",
        "validation": "train[20000:]",
        "test": "test",
    },
    metrics=_MACRO,
    cite=_CITE,
    aliases={"text": "sentence"},
)

TAE = (
    CHEMPROT,
    ACL_ARC,
    SCIERC,
    HYPERPARTISAN,
    RCT,
    AGNEWS,
    HELPFULNESS,
    IMDB,
)
