"""Tests that each adapter keeps the names of the texts that it reads."""

import numpy as np
import pytest

from tests.text.models import CLASSES
from tests.text.models import TEXTS
from tests.text.models import eager
from tests.text.models import text_model
from tf_adapters.text import loading

PAIRS = list(zip(TEXTS, TEXTS[::-1], strict=True))


def test_only_training_changes_the_names_and_only_of_its_adapter(tmp_path):
    model = text_model()
    model.predict(TEXTS, verbose=0)
    table = {"q": TEXTS, "a": TEXTS[::-1]}
    model.fit(
        table,
        CLASSES,
        text=("q", "a"),
        validation_data=(PAIRS, CLASSES),
        verbose=0,
    )
    model.evaluate(PAIRS, CLASSES, verbose=0)
    assert model.text_fields == ("q", "a")
    model.save_adapter(tmp_path / "pairs")
    model.add_adapter("single", "lora", labels=("no", "yes"))
    eager(model)
    model.fit(TEXTS, [0, 1] * 3, verbose=0)
    with model.disabled():
        assert model.text_fields == ("text",)
    model.add_adapter("stored", tmp_path / "pairs")
    assert model.text_fields == ("q", "a")
    model.set_active("single")
    assert model.text_fields == ("text",)
    model.set_active("default")
    assert model.text_fields == ("q", "a")


def test_a_table_is_read_by_the_columns_of_the_training():
    model = text_model()
    labels = ["positive", "negative"] * 3
    table = {"text": TEXTS[::-1], "q": TEXTS, "label": labels}
    model.fit(table, text="q", verbose=0)
    expected = model.predict(TEXTS, verbose=0)
    loss = model.evaluate(TEXTS, labels, verbose=0)
    tf = pytest.importorskip("tensorflow")
    for data in (table, tf.data.Dataset.from_tensor_slices(table)):
        found = model.predict(data, verbose=0)
        np.testing.assert_allclose(found, expected, atol=1e-5)
        found = model.evaluate(data, verbose=0)
        assert found == pytest.approx(loss, abs=1e-5)
    # A table without these columns has its usual ones.
    other = {"text": TEXTS, "label": labels}
    found = model.predict(other, verbose=0)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_an_export_is_checked_on_the_columns_that_a_table_has(monkeypatch):
    onnx_model = pytest.importorskip("tf_adapters.export.onnx_model")
    model, found = text_model(), []
    model.text_fields = ("review",)

    def export(*_, text_fields, **_options):
        found.append(text_fields)

    monkeypatch.setattr(onnx_model, "export_onnx", export)
    for name in ("review", "text"):
        model.export("x", "onnx", texts={name: TEXTS})
    assert found == [("review",), ("text",)]


@pytest.mark.parametrize(
    ("task", "fields"),
    [("task: rte", ("sentence1", "sentence2")), ("task: moved", None)],
)
def test_an_earlier_run_reads_the_texts_of_its_task(task, fields, tmp_path):
    text_model().save_adapter(tmp_path / "adapter")
    content = f"{task}\nmethod: pfeiffer\n"
    (tmp_path / "config.yaml").write_text(content, encoding="utf-8")
    assert loading.load(tmp_path).text_fields == fields
