"""Generated tasks for the demo and the tests.

They do not need a network or files. Their texts come from small grammars, so
their scores only show that training works, not how well a model understands
language.
"""

from tf_adapters.tasks.task import THREE_SPLITS
from tf_adapters.tasks.task import Task


def _task(
    name: str,
    text_fields: tuple[str, ...],
    labels: tuple[str, ...],
    metrics: tuple[str, ...] | None = None,
) -> Task:
    return Task(
        name=f"demo_{name}",
        source=f"builtin:{name}",
        text_fields=text_fields,
        labels=labels,
        splits=THREE_SPLITS,
        metrics=metrics,
        cite="Generated: tf_adapters/data/rows/generated.py",
    )


BUILTIN = (
    _task("sentiment", ("sentence",), ("negative", "positive")),
    _task(
        "entailment",
        ("premise", "hypothesis"),
        ("entailment", "neutral", "contradiction"),
    ),
    _task(
        "acceptability",
        ("sentence",),
        ("unacceptable", "acceptable"),
        ("matthews", "accuracy"),
    ),
)
