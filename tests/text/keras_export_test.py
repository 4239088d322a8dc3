"""A `.keras` file of a run answers texts as the run's model."""

import json

import pytest

from tests.export import conftest
import tf_adapters
from tf_adapters.text import keras_export


def test_the_file_answers_as_the_model_and_describes_it(tmp_path):
    method = tf_adapters.methods.Houlsby(units=4)
    model, packer, config = conftest.make_run(tmp_path, "wnli", method)
    folder = keras_export.export_run(config, tmp_path)
    assert folder == tmp_path / "keras" / "wnli"
    loaded = tf_adapters.load(folder / "model.keras")
    names = loaded.text_fields
    assert len(names) == 2
    texts = conftest.SENTENCES[:2], conftest.SENTENCES[2:4]
    found = loaded.answer(dict(zip(names, texts, strict=True)), text=names)
    expected = model.head.decode(model(packer(*texts)).numpy())
    for one, other in zip(found, expected, strict=True):
        assert one["label"] == other["label"]
        assert one["probabilities"] == pytest.approx(
            other["probabilities"], abs=1e-5
        )
    facts = json.loads((folder / "metadata.json").read_text())
    assert json.loads(facts["labels"]) == list(model.head.labels)
    assert (folder / "tokenizer.json").is_file()
