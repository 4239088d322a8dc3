"""Tests text models in `.keras` files."""

import json
import os
from pathlib import Path
import resource
import subprocess
import sys
import zipfile

import keras
import numpy as np
import pytest

from tests.fixtures import huggingface_folders
from tests.text.models import CLASSES
from tests.text.models import FOLDER
from tests.text.models import LABELS
from tests.text.models import TEXTS
from tests.text.models import eager
from tests.text.models import text_model
from tf_adapters import heads
from tf_adapters.encoders.huggingface_tokenizer import HuggingFaceTokenizer
from tf_adapters.encoders.load import load_encoder
from tf_adapters.text import loading
from tf_adapters.text.text_model import TextModel


def _saved(model, folder):
    model.save(folder / "model.keras")
    return keras.saving.load_model(folder / "model.keras")


def _assert_alike(one, other):
    assert one.active == other.active
    np.testing.assert_allclose(
        one.predict(TEXTS, verbose=0),
        other.predict(TEXTS, verbose=0),
        atol=1e-6,
    )


def test_a_model_is_the_same_from_its_file(tmp_path):
    model = text_model("houlsby", max_length=20, learning_rate=1e-2)
    model.fit({"review": TEXTS}, CLASSES, text="review", verbose=0)
    loaded = _saved(model, tmp_path)
    assert loaded.answer(TEXTS) == model.answer(TEXTS)
    assert repr(loaded) == repr(model)
    assert loaded.preprocessor.max_length == 20
    assert loaded.text_fields == ("review",)
    assert int(loaded.optimizer.iterations) == 1
    with zipfile.ZipFile(tmp_path / "model.keras") as file:
        names = [n for n in file.namelist() if n.endswith("vocabulary.txt")]
        words = file.read(names[0]).decode().split("\n")
    assert words == list(model.preprocessor.packer.tokenizer.get_vocabulary())
    # And trains on as the other does.
    for one in (model, loaded):
        one.adapter_model.run_eagerly = True
        one.fit(TEXTS, CLASSES, shuffle=False, verbose=0)
    assert np.isfinite(loaded.predict(TEXTS, verbose=0)).all()


def test_every_adapter_of_a_model_is_in_its_file(tmp_path):
    model = text_model("bitfit", learning_rate=1e-2)
    model.fit(TEXTS, CLASSES, epochs=3, verbose=0)
    model.add_adapter("topic", "houlsby", labels=("a", "b", "c"))
    eager(model)
    model.fit(TEXTS, ["a", "b", "c"] * 2, epochs=3, verbose=0)
    model.text_fields = ("subject",)
    loaded = _saved(model, tmp_path)
    _assert_alike(loaded, model)
    assert loaded.adapters.text_fields == {
        "default": ("text",),
        "topic": ("subject",),
    }
    for one in (model, loaded):
        one.set_active("default")
    _assert_alike(loaded, model)
    with model.disabled(), loaded.disabled():
        _assert_alike(loaded, model)
    _assert_alike(loaded, model)
    # A second time, from the loaded one.
    again = _saved(loaded, tmp_path)
    again.set_active("topic")
    model.set_active("topic")
    _assert_alike(again, model)


@pytest.mark.parametrize("name", ["roberta_classifier", "xlm_roberta"])
def test_vocabularies_of_every_kind_are_in_the_file(name, tmp_path):
    model = text_model(folder=str(huggingface_folders.folder(name)))
    loaded = _saved(model, tmp_path)
    _assert_alike(loaded, model)
    texts = ["A film, 1999!", "naïve  ½ words </s>", ""]
    for key, values in model.preprocessor(texts).items():
        np.testing.assert_array_equal(loaded.preprocessor(texts)[key], values)


def test_a_tokenizer_in_python_is_in_the_file(tmp_path):
    encoder, _ = load_encoder(FOLDER)
    tokenizer = HuggingFaceTokenizer(FOLDER)
    model = TextModel(encoder, tokenizer, labels=LABELS)
    loaded = _saved(model, tmp_path)
    _assert_alike(loaded, model)
    assert loaded.preprocessor.packer.tokenizer.in_graph() is not None


def test_code_in_a_file_is_not_run(tmp_path, monkeypatch):
    """transformers would ask on the terminal, and run it after "y"."""
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    encoder, _ = load_encoder(FOLDER)
    model = TextModel(encoder, HuggingFaceTokenizer(FOLDER), labels=LABELS)
    model.save(tmp_path / "model.keras")
    _add_code(tmp_path / "model.keras", tmp_path / "strange.keras")
    with pytest.raises(ValueError, match="Code in the file is not run"):
        loading.load(tmp_path / "strange.keras")


def _add_code(source, target):
    """Copies a file with a tokenizer that names a class in a Python file."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name.endswith("/tokenizer_config.json"):
                classes = {"AutoTokenizer": [None, "own.Own"]}
                own = {"tokenizer_class": "Own", "auto_map": classes}
                content = json.dumps({**json.loads(content), **own})
                code = name.replace("tokenizer_config.json", "own.py")
                new.writestr(code, "raise SystemExit('This ran.')")
            new.writestr(name, content)


def test_a_model_of_token_features_is_saved_without_a_packer(tmp_path):
    encoder, tokenizer = load_encoder(FOLDER)
    packer = TextModel(encoder, tokenizer, labels=LABELS).preprocessor
    features = {k: np.asarray(v) for k, v in packer(TEXTS).items()}
    model = TextModel(encoder, labels=LABELS, preprocessor=None)
    loaded = _saved(model, tmp_path)
    np.testing.assert_allclose(
        loaded.predict(features, verbose=0),
        model.predict(features, verbose=0),
        atol=1e-6,
    )


def test_a_head_with_settings_is_in_the_file(tmp_path):
    head = heads.MultiLabel(LABELS, threshold=0.25, hidden_layer="tanh")
    loaded = _saved(text_model("lora", head=head), tmp_path)
    assert loaded.head == head


_PROGRAM = """
import sys
import keras
from tf_adapters import TextModel
model = keras.saving.load_model(sys.argv[1])
print([answer["label"] for answer in model.answer(["a fine film", "no"])])
"""


@pytest.mark.integration
def test_another_process_loads_the_file(tmp_path):
    model = text_model()
    model.save(tmp_path / "model.keras")
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, tmp_path / "model.keras"],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    labels = [answer["label"] for answer in model.answer(["a fine film", "no"])]
    assert done.stdout.splitlines() == [str(labels)], done.stderr


def test_a_file_is_loaded_by_its_path(tmp_path):
    model = text_model()
    model.save(tmp_path / "model.keras")
    loaded = loading.load(tmp_path / "model.keras")
    assert loaded.answer(TEXTS) == model.answer(TEXTS)
    with pytest.raises(ValueError, match="without other arguments"):
        loading.load(tmp_path / "model.keras", max_length=8)
    model.adapter_model.save(tmp_path / "features.keras")
    with pytest.raises(ValueError, match="no text model, but a AdapterModel"):
        loading.load(tmp_path / "features.keras")


def test_a_damaged_file_is_called_damaged(tmp_path):
    path = tmp_path / "folder" / "model.keras"
    text_model().save(path)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ValueError, match="model.keras is damaged"):
        loading.load(path)


def test_a_disabled_or_merged_model_is_not_saved(tmp_path):
    model = text_model("lora")
    with model.disabled(), pytest.raises(ValueError, match="disabled"):
        model.save(tmp_path / "model.keras")
    for use in (model.save_weights, model.load_weights):
        with model.disabled(), pytest.raises(ValueError, match="disabled here"):
            use(tmp_path / "model.weights.h5")
    with pytest.raises(ValueError, match="a file on this machine"):
        model.save("gs://bucket/model.keras")
    model.adapter_model.fold()
    for use in (model.save, model.save_weights, model.load_weights):
        with pytest.raises(ValueError, match="unfold"):
            use(tmp_path / "model.keras")
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_unchanged_if_saving_fails(tmp_path, monkeypatch):
    path, model = tmp_path / "model.keras", text_model()
    model.save(path)
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            model.save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
