"""Ways to use a model while another model holds its encoder."""

import keras
import numpy as np
import pytest

from tests import tiny
import tf_adapters
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import UserError
from tf_adapters.models.adapter_model import adapt
from tf_adapters.models.bank_model import load_bank

HEAD = heads.Classification(("no", "yes"))
LABELS = np.array([0, 1, 1])
CHANGED = "no longer has the weights"


@pytest.fixture(name="encoder")
def _encoder():
    return tiny.encoder(num_blocks=1)


def _trained(encoder, method, name="trained"):
    model = adapt(encoder, method, HEAD, name=name)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, run_eagerly=True)
    model.fit(tiny.batch(encoder), LABELS, verbose=0)
    return model


def test_no_way_of_saving_or_loading_ignores_another_training(
    encoder, tmp_path
):
    frozen = adapt(encoder, methods.Pfeiffer(units=2), HEAD, name="frozen")
    frozen.save_weights(tmp_path / "before.weights.h5")
    full = _trained(encoder, methods.Full())
    for use in (
        lambda: frozen.save_weights(tmp_path / "after.weights.h5"),
        lambda: frozen.load_weights(tmp_path / "before.weights.h5"),
        lambda: frozen.export(str(tmp_path / "exported"), verbose=False),
        lambda: frozen.encode(tiny.batch(encoder)),
    ):
        with pytest.raises(UserError, match=CHANGED):
            use()
    assert [p.name for p in tmp_path.iterdir()] == ["before.weights.h5"]
    full.save_weights(tmp_path / "full.weights.h5")


def test_loaded_weights_of_the_encoder_are_the_loading_models(
    encoder, tmp_path
):
    full = adapt(encoder, methods.Full(), HEAD, name="full")
    other = adapt(encoder, methods.Pfeiffer(units=2), HEAD, name="other")
    full.save_weights(tmp_path / "full.weights.h5")
    weight = encoder.backbone.token_embedding.embeddings
    weight.assign(weight + 1)
    full.save_weights(tmp_path / "full.weights.h5")
    encoder.restore()
    full = adapt(encoder, methods.Full(), HEAD, name="full")
    full.load_weights(tmp_path / "full.weights.h5")
    with pytest.raises(UserError, match="the model `full` has changed"):
        other(tiny.batch(encoder))


def test_a_bank_stores_differences_from_the_loaded_encoder(encoder):
    frozen = adapt(encoder, methods.Pfeiffer(units=2), HEAD, name="frozen")
    bank = load_bank([frozen], encoder, capacity=3)
    inputs = {**tiny.batch(encoder), "adapter_ids": np.zeros(3, "int32")}
    before = np.asarray(bank(inputs))
    trained = _trained(encoder, methods.Houlsby(units=2))
    with pytest.raises(UserError, match=CHANGED):
        bank.add(trained)
    encoder.restore()
    np.testing.assert_array_equal(np.asarray(bank(inputs)), before)


def test_a_file_survives_a_save_that_is_refused(encoder, tmp_path):
    model = adapt(encoder, methods.LoRA(rank=1), HEAD, name="lora")
    path = tmp_path / "model.keras"
    model.save(path)
    before = path.read_bytes()
    model.fold()
    weights = tmp_path / "x.weights.h5"
    with pytest.raises(UserError, match="unfold"):
        model.load_weights(weights)
    for save in (model.save, model.save_weights):
        with pytest.raises(UserError, match="unfold"):
            save(path if save == model.save else weights)
    model.unfold()
    parallel = tf_adapters.compose(encoder, tf_adapters.Parallel(model, model))
    with pytest.raises(UserError, match="has no file of its own"):
        parallel.save(path)
    with pytest.raises(AdapterError, match="has no file of its own"):
        load_bank([model], encoder).save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model.keras"]


def test_a_folded_model_is_unfolded_before_others_compute(encoder):
    lora = adapt(encoder, methods.LoRA(rank=1), HEAD, name="lora")
    for variable in lora.trained_variables().values():
        variable.assign(variable + 0.5)
    other = adapt(encoder, methods.Pfeiffer(units=2), HEAD, name="other")
    before = np.asarray(other(tiny.batch(encoder)))
    expected = np.asarray(lora(tiny.batch(encoder)))
    lora.fold()
    for use in (lambda: other(tiny.batch(encoder)), encoder.restore):
        with pytest.raises(UserError, match=r"`lora` are folded.*`unfold\(\)`"):
            use()
    lora.unfold()
    np.testing.assert_array_equal(other(tiny.batch(encoder)), before)
    np.testing.assert_array_equal(lora(tiny.batch(encoder)), expected)
    lora.trained_variables()
    # A loop of one's own may now train another model.
    bitfit = adapt(encoder, methods.BitFit(), HEAD, name="bitfit")
    for _ in range(2):
        bitfit(tiny.batch(encoder), training=True)
        for variable in bitfit.trained_variables().values():
            variable.assign(variable + 0.1)


def test_models_trained_inside_others_do_not_mix_their_norms(encoder):
    batch = tiny.batch(encoder)
    inner = [
        adapt(encoder, methods.Houlsby(units=2), name=name) for name in "ab"
    ]
    inputs = {
        name: keras.Input((None,), dtype="int32", name=name) for name in batch
    }
    outer = []
    for model in inner:
        outputs = model(inputs)["first_token_output"][:, :1]
        outer.append(keras.Model(inputs, outputs))
        outer[-1].compile("adam", "mse")
    outer[0].fit(batch, LABELS, verbose=0)
    with pytest.raises(UserError, match="the model `a` has changed"):
        outer[1].fit(batch, LABELS, verbose=0)
    with pytest.raises(UserError, match="the model `a` has changed"):
        inner[1].predict(batch, verbose=0)
    outer[0].predict(batch, verbose=0)
