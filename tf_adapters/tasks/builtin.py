"""The tasks that the project generates itself, for the demo and the tests.

They need no network and no file. Their texts come from small grammars, so a
score on them says that training works, and nothing about language at large.
"""

from tf_adapters.tasks.task import THREE_SPLITS
from tf_adapters.tasks.task import Task

_CITE = "Generated: tf_adapters/data/rows/generated.py"

BUILTIN = (
    Task(
        name="demo_sentiment",
        source="builtin:sentiment",
        text_fields=("sentence",),
        labels=("negative", "positive"),
        splits=THREE_SPLITS,
        cite=_CITE,
    ),
    Task(
        name="demo_entailment",
        source="builtin:entailment",
        text_fields=("premise", "hypothesis"),
        labels=("entailment", "neutral", "contradiction"),
        splits=THREE_SPLITS,
        cite=_CITE,
    ),
    Task(
        name="demo_acceptability",
        source="builtin:acceptability",
        text_fields=("sentence",),
        labels=("unacceptable", "acceptable"),
        splits=THREE_SPLITS,
        metrics=("matthews", "accuracy"),
        cite=_CITE,
    ),
)
