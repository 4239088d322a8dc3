"""Tests encoders that are named by the folder of a run."""

import json

import numpy as np
import pytest

from tests import stored
from tests import tiny
from tests.fixtures import huggingface_folders
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common import adapter_folder
from tf_adapters.common.errors import AdapterError
from tf_adapters.encoders.encoder import encoder_fingerprint
from tf_adapters.encoders.load import load_encoder
from tf_adapters.models import saving
from tf_adapters.models.adapted_encoder import AdaptedEncoder
from tf_adapters.models.adapter_model import adapt
from tf_adapters.models.multitask_model import MultiTaskModel

BASE = str(huggingface_folders.folder("bert"))
HEAD = heads.Classification(("no", "yes"))
NUMBER = heads.Regression()
METHOD = methods.MultiTask(("a", "b"), methods.Pfeiffer(units=4))


def _shaken(model, seed=1):
    """Changes all trained weights of a model."""
    generator = np.random.default_rng(seed)
    for variable in model.trained_variables().values():
        noise = generator.normal(0, 0.1, variable.shape)
        variable.assign(variable.numpy() + noise)
    return model


@pytest.fixture
def full_run(tmp_path):
    """Makes the folder of a run with method `full`, and its model."""
    encoder, _ = load_encoder(BASE)
    model = _shaken(adapt(encoder, methods.Full(), HEAD))
    saving.save_adapter(model, tmp_path / "run" / "adapter")
    return tmp_path / "run", model


@pytest.fixture
def joint_run(tmp_path):
    """Makes the folder of a run with two tasks, and its model."""
    encoder, _ = load_encoder(BASE)
    tasks = {"a": HEAD, "b": NUMBER}
    models = {n: adapt(encoder, METHOD, head) for n, head in tasks.items()}
    joint = _shaken(MultiTaskModel(models))
    _save(joint, tmp_path / "run")
    return tmp_path / "run", joint


def _save(joint, folder):
    encoder = joint.save_encoder(folder / "encoder")
    for task in joint.models:
        joint.save_adapter(task, folder / task / "adapter", encoder)


@pytest.mark.parametrize("place", ["", "adapter"])
def test_a_run_of_method_full_names_its_encoder(full_run, place):
    folder, model = full_run
    encoder, tokenizer = load_encoder(folder / place)
    trained = model.encoder_info.backbone.weights
    for new, expected in zip(encoder.backbone.weights, trained, strict=True):
        np.testing.assert_array_equal(new.numpy(), expected.numpy())
    base, base_tokenizer = load_encoder(BASE)
    assert encoder.activation == base.activation
    assert encoder_fingerprint(encoder) != encoder_fingerprint(base)
    assert encoder.takes_segments == base.takes_segments
    assert type(tokenizer) is type(base_tokenizer)


def test_a_run_does_not_load_with_rounded_weights(full_run):
    folder, _ = full_run
    advice = r'\. If it is the same one: .* such as dtype="mixed_bfloat16"'
    with pytest.raises(AdapterError, match=advice):
        load_encoder(folder, dtype="bfloat16", with_tokenizer=False)
    encoder, _ = load_encoder(BASE, dtype="bfloat16", with_tokenizer=False)
    with pytest.raises(AdapterError, match=advice):
        saving.load_adapter(folder / "adapter", encoder)
    load_encoder(folder, dtype="mixed_bfloat16", with_tokenizer=False)


def test_sequential_fine_tuning_starts_from_there(full_run, tmp_path):
    """Trains three encoders in a row, each from the previous one."""
    folder, first = full_run
    encoder, _ = load_encoder(folder)
    second = _shaken(adapt(encoder, methods.Full(), NUMBER), seed=2)
    saving.save_adapter(second, tmp_path / "second" / "adapter")
    features = tiny.batch(encoder)
    expected = np.asarray(second(features))
    third, _ = load_encoder(tmp_path / "second")
    hidden = AdaptedEncoder(third)(features)["sequence_output"]
    np.testing.assert_array_equal(
        hidden, second.encoder(features)["sequence_output"]
    )
    reloaded = saving.load_adapter(
        tmp_path / "second" / "adapter", load_encoder(folder)[0]
    )
    np.testing.assert_array_equal(reloaded(features), expected)


def test_encoders_in_a_row_that_moved_together_are_found(tmp_path):
    first, encoder = tmp_path / "runs" / "first", load_encoder(BASE)[0]
    for folder, seed in ((first, 1), (tmp_path / "runs" / "second", 2)):
        model = _shaken(adapt(encoder, methods.Full(), NUMBER), seed)
        saving.save_adapter(model, folder / "adapter")
        encoder, _ = load_encoder(folder)
    expected = [np.array(weight) for weight in encoder.backbone.weights]
    (tmp_path / "runs").rename(tmp_path / "moved")
    moved, _ = load_encoder(tmp_path / "moved" / "second")
    for weight, value in zip(moved.backbone.weights, expected, strict=True):
        np.testing.assert_array_equal(weight, value)


def test_tasks_that_trained_together_reload_exactly(joint_run):
    folder, joint = joint_run
    for name, model in joint.models.items():
        encoder, _ = load_encoder(folder / "encoder")
        loaded = saving.load_adapter(folder / name / "adapter", encoder)
        assert loaded.method == METHOD.adapter
        features = tiny.batch(encoder)
        np.testing.assert_array_equal(loaded(features), model(features))
        assert set(loaded.trained_variables()) == set(joint.own_variables(name))


def test_an_encoder_folder_holds_no_pickle_and_names_its_base(joint_run):
    folder, joint = joint_run
    files = sorted(p.name for p in (folder / "encoder").iterdir())
    assert files == ["README.md", "adapter.safetensors", "adapter_config.json"]
    config = json.loads((folder / "encoder" / files[2]).read_text())
    base, _ = load_encoder(BASE)
    assert config["encoder"]["name"] == BASE
    assert config["encoder"]["fingerprint"] == encoder_fingerprint(base)
    adapter = folder / "a" / "adapter"
    task = json.loads((adapter / files[2]).read_text())
    trained, _ = load_encoder(folder / "encoder")
    # Both may move together.
    assert task["encoder"]["name"] == "../../encoder"
    found = adapter_folder.read_adapter_config(adapter)["encoder"]["name"]
    assert found == str(folder / "encoder")
    assert task["encoder"]["fingerprint"] == encoder_fingerprint(trained)


def test_the_encoder_that_training_started_from_is_refused(joint_run):
    folder, _ = joint_run
    base, _ = load_encoder(BASE)
    with pytest.raises(saving.AdapterError, match="was trained on encoder"):
        saving.load_adapter(folder / "a" / "adapter", base)


def test_another_trained_encoder_is_refused(joint_run):
    """After further training, the tasks' old adapters no longer fit."""
    folder, joint = joint_run
    _shaken(joint, seed=5).save_encoder(folder / "encoder")
    encoder, _ = load_encoder(folder / "encoder")
    with pytest.raises(saving.AdapterError, match="Load that encoder"):
        saving.load_adapter(folder / "a" / "adapter", encoder)


def test_another_base_is_refused(full_run):
    folder, _ = full_run
    path = folder / "adapter" / "adapter_config.json"
    config = json.loads(path.read_text())
    config["encoder"]["name"] = str(huggingface_folders.folder("bert_gelu_new"))
    path.write_text(json.dumps(config))
    with pytest.raises(saving.AdapterError, match="was trained from"):
        load_encoder(folder)


def test_a_run_that_trained_no_encoder_is_refused(joint_run):
    folder, _ = joint_run
    message = "trained with `pfeiffer`: it holds no encoder"
    with pytest.raises(saving.AdapterError, match=message):
        load_encoder(folder / "a")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.pop("token_embedding/embeddings"), "Missing: token_emb"),
        (lambda t: t.update(extra=np.zeros(3)), "Unexpected: extra"),
        (
            lambda t: t.update({"embeddings_layer_norm/gamma": np.zeros(3)}),
            "has shape",
        ),
    ],
    ids=["missing", "unexpected", "misshaped"],
)
def test_loading_is_strict(full_run, change, message):
    folder, _ = full_run
    stored.change_weights(folder / "adapter", change)
    with pytest.raises(saving.AdapterError, match=message):
        load_encoder(folder)
