"""Generated tasks for the demo and the tests.

They do not need a network or files. Their texts come from small grammars, so
their scores only show that training works, not how well a model understands
language.
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
