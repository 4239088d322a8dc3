"""Tests the errors of `Task`."""

import dataclasses

import pytest

from tf_adapters.common.errors import UserError
from tf_adapters.heads import metrics
from tf_adapters.heads import ranking_metrics
from tf_adapters.heads import span_metrics
from tf_adapters.tasks import table_task
from tf_adapters.tasks.output_kinds import KINDS
from tf_adapters.tasks.task import Task

TASK = Task(
    name="mine",
    source="",
    text_fields=("text",),
    labels=("a", "b", "c"),
    splits={"train": "train", "validation": "validation"},
    head="classification",
    metrics=("accuracy",),
    cite="here",
)


def test_every_metric_suits_a_head():
    assert {name: set(kind.metrics) for name, kind in KINDS.items()} == {
        "classification": set(metrics.CLASSIFICATION_METRICS),
        "multilabel": {"micro_f1", "macro_f1"},
        "regression": set(metrics.REGRESSION_METRICS),
        "sentence_vector": set(metrics.REGRESSION_METRICS),
        "sentence_ranking": set(ranking_metrics.RANKING_METRICS),
        "choice": {"accuracy"},
        "tagging": set(metrics.TAGGING_METRICS),
        "span": set(span_metrics.SPAN_METRICS),
        "masked_lm": {"log_likelihood", "masked_accuracy", "loss"},
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"text_fields": ()}, "one or two text fields"),
        ({"text_fields": ("a", "b", "c")}, "one or two text fields"),
        ({"text_fields": ("a", "a")}, "one or two text fields"),
        ({"label_field": "text"}, "cannot read its label"),
        ({"splits": {"train": "train"}}, r"lacks the splits \['validation'\]"),
        ({"head": "clasification"}, "Did you mean `classification`"),
        ({"labels": ("a",)}, "at least two classes"),
        ({"labels": ("a", "b", "a")}, "each named once"),
        ({"head": "regression", "metrics": ("pearson",)}, "has no classes"),
        (
            {"head": "choice", "labels": (), "text_fields": ("a",)},
            "last, one for the choices",
        ),
        ({"metrics": ()}, "one metric or more"),
        ({"metrics": ("macro-f1",)}, "Did you mean `macro_f1`"),
        ({"metrics": ("pearson",)}, "which suit classification"),
        ({"metrics": ("f1",)}, "is for two classes"),
    ],
)
def test_inconsistent_tasks_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(TASK, **changes)


def test_f1_waits_for_the_classes_of_the_data():
    task = dataclasses.replace(TASK, labels=(), metrics=("f1",))
    assert dataclasses.replace(task, labels=("a", "b")).metrics == ("f1",)
    with pytest.raises(ValueError, match="is for two classes"):
        dataclasses.replace(task, labels=("a", "b", "c"))


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("data/reviews.csv", "reviews"),
        (f"data/{'a' * 130}.csv", "a" * 100),
        (f"a{'ü' * 80}.csv", f"a{'ü' * 49}"),
        ("\udcff.csv", "table"),
    ],
)
def test_a_table_has_a_name_that_a_task_may_have(file, name):
    """Its beginning in 100 bytes; a byte that is no text is left out."""
    assert table_task.name_of_table(file) == name
    dataclasses.replace(TASK, name=name)


def test_a_text_field_cannot_have_the_name_of_labels():
    with pytest.raises(UserError, match="Rename the column"):
        Task("own", ("label",), labels=("a", "b"), label_field="kind")


def test_weights_are_not_selected_by_the_loss():
    with pytest.raises(UserError, match="log_likelihood"):
        Task("own", ("text",), head="masked_lm", metrics=("loss",))
