"""Compares LoRA with PEFT and its formula, and tests folding.

`tests/fixtures/make_lora_fixtures.py` made the fixtures.
"""

import json
from pathlib import Path

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file
import tensorflow as tf

from tests import tiny
from tests.references import reparameterizations_numpy as reference
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common.errors import UserError
from tf_adapters.encoders.load import load_encoder
from tf_adapters.layers.stateless_seeds import StatelessSeeds
from tf_adapters.layers.stateless_seeds import dropout
from tf_adapters.methods import LoRA
from tf_adapters.methods.lora import LoRAUpdate
from tf_adapters.models import saving
from tf_adapters.models.adapter_model import adapt

FIXTURES = Path(__file__).parents[1] / "fixtures"
PROJECTIONS = {
    "attention.self.query": "query",
    "attention.self.key": "key",
    "attention.self.value": "value",
    "attention.output.dense": "output",
}
PROJECTION_NAMES = (*PROJECTIONS.values(), "ffn_up", "ffn_down")
HEAD = heads.Classification(("no", "yes"))


def _named(model):
    """Yields PEFT's name and our variable, which is transposed."""
    paths = {ours: theirs for theirs, ours in PROJECTIONS.items()}
    for block, slots in enumerate(model.slots):
        for name, slot in slots.items():
            start = f"base_model.model.encoder.layer.{block}.{paths[name]}"
            yield f"{start}.lora_A.weight", slot.down_kernel
            yield f"{start}.lora_B.weight", slot.up_kernel


def _load(case):
    folder = FIXTURES / "lora" / case
    config = json.loads((folder / "adapter_config.json").read_text())
    method = LoRA(
        rank=config["r"],
        alpha=float(config["lora_alpha"]),
        projections=tuple(PROJECTIONS[name] for name in _paths(config)),
    )
    encoder, _ = load_encoder(FIXTURES / "adapters" / "encoders" / "bert")
    model = adapt(encoder, method)
    weights = load_file(folder / "adapter_model.safetensors")
    for name, variable in _named(model):
        variable.assign(weights.pop(name).T)
    assert not weights
    return model, load_file(folder / "example.safetensors")


def _paths(config):
    return [
        path
        for path in PROJECTIONS
        if any(path.endswith(name) for name in config["target_modules"])
    ]


def _features(example):
    names = ("token_ids", "padding_mask", "segment_ids")
    return {name: example[name] for name in names}


@pytest.mark.parametrize("case", ["query_value", "all"])
def test_outputs_and_gradients_are_pefts(case):
    model, example = _load(case)
    mask = example["padding_mask"][:, :, None]
    names, variables = zip(*_named(model), strict=True)
    values = [variable.value for variable in variables]
    with tf.GradientTape() as tape:
        tape.watch(values)
        output = model(_features(example), training=True, seed=[1, 0])
        output = output["sequence_output"]
        loss = tf.reduce_sum(output * example["loss_weights"] * mask)
    np.testing.assert_allclose(
        output * mask, example["last_hidden_state"] * mask, atol=1e-5
    )
    np.testing.assert_allclose(loss, example["loss"], rtol=1e-5, atol=1e-5)
    expected = load_file(FIXTURES / "lora" / case / "gradients.safetensors")
    gradients = dict(zip(names, tape.gradient(loss, values), strict=True))
    assert set(gradients) == set(expected)
    for name, wanted in expected.items():
        np.testing.assert_allclose(
            gradients[name], wanted.T, rtol=1e-5, atol=1e-5, err_msg=name
        )


@pytest.mark.parametrize("case", ["query_value", "all"])
def test_a_merged_model_is_pefts(case):
    model, example = _load(case)
    mask = example["padding_mask"][:, :, None]
    model.fold()
    # The encoder alone has it all now.
    output = model.encoder(_features(example))["sequence_output"]
    np.testing.assert_allclose(
        output * mask, example["merged_hidden_state"] * mask, atol=1e-5
    )


def _random_model(**options):
    model = adapt(tiny.encoder(), LoRA(rank=3, alpha=5.0, **options), HEAD)
    tiny.randomize(model.trained_variables().values())
    return model


@pytest.mark.parametrize("name", PROJECTION_NAMES)
def test_each_projection_changes_by_its_own_product(name):
    model = _random_model(projections=(name,))
    kernels = [block.kernels()[name][0] for block in model.encoder.blocks]
    before = tiny.values(kernels)
    slots = [block[name] for block in model.slots]
    products = [tiny.values(slot.weights) for slot in slots]
    model.fold()
    assert not any(w.any() for s in slots for w in tiny.values(s.weights))
    for old, kernel, (down, up) in zip(before, kernels, products, strict=True):
        expected = reference.lora(old, down.T, up.T, alpha=5.0)
        assert np.abs(expected - old).max() > 0.3
        np.testing.assert_allclose(kernel.numpy(), expected, atol=1e-6)


def test_gradients_by_hand():
    generator = np.random.default_rng(0)
    x = generator.normal(size=(2, 5, 6)).astype("float32")
    gradient = generator.normal(size=(2, 5, 8)).astype("float32")
    layer = LoRAUpdate(6, 8, rank=3, alpha=5.0)
    layer.build()
    tiny.randomize(layer.weights)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer.change(tf.constant(x)) * gradient)
    actual = tape.gradient(loss, [v.value for v in layer.weights])
    a, b = (np.float64(value.T) for value in tiny.values(layer.weights))
    of_kernel = np.einsum("bti,bto->io", np.float64(x), gradient)
    expected = reference.lora_gradients(of_kernel, a, b, alpha=5.0)
    for ours, theirs in zip(actual, expected, strict=True):
        np.testing.assert_allclose(ours, theirs.T, rtol=1e-5, atol=1e-5)


def test_fold_keeps_the_outputs_and_unfold_every_weight():
    model = _random_model()
    features = tiny.batch(model.encoder_info)
    model.compile()
    expected = model.predict(features, verbose=0)
    before = tiny.values(model.weights)
    model.fold()
    model.fold()  # Nothing is added a second time.
    np.testing.assert_allclose(model(features), expected, atol=1e-5)
    np.testing.assert_allclose(
        model.predict(features, verbose=0), expected, atol=1e-5
    )
    model.unfold()
    for old, new in zip(before, tiny.values(model.weights), strict=True):
        np.testing.assert_array_equal(new, old)
    np.testing.assert_allclose(model(features), expected, atol=1e-5)
    # The graph that Keras traced while it was merged is not called again.
    np.testing.assert_allclose(
        model.predict(features, verbose=0), expected, atol=1e-5
    )


def test_kernels_of_half_precision_cannot_hold_small_changes():
    encoder = tiny.encoder(num_blocks=1, dtype="bfloat16")
    model = adapt(encoder, methods.LoRA(rank=1))
    with pytest.raises(UserError, match="bfloat16, which rounds away"):
        model.fold()
    assert not model.reparameterization.written()
    with pytest.raises(UserError, match="trained weights must be float32"):
        adapt(encoder, methods.DiffPruning())


def test_a_union_of_two_is_folded():
    parts = LoRA(projections=("query",)), LoRA(projections=("value",), rank=2)
    encoder = tiny.encoder()
    model = adapt(encoder, methods.Union(parts), HEAD)
    tiny.randomize(model.trainable_weights, 0.3)
    features = tiny.batch(encoder)
    expected = np.asarray(model(features))
    model.fold()
    slots = [slot for block in model.slots for slot in block.values()]
    assert all(slot.is_folded for slot in slots)
    np.testing.assert_allclose(model(features), expected, atol=1e-5)
    model.unfold()
    np.testing.assert_allclose(model(features), expected, atol=1e-5)


def test_what_was_left_out_is_not_merged():
    model = _random_model()
    features = tiny.batch(model.encoder_info)
    model.leave_out((0,))
    expected = model(features)
    model.fold()
    np.testing.assert_allclose(model(features), expected, atol=1e-5)


def test_a_model_folded_while_blocks_are_left_out_unfolds_exactly():
    model = _random_model()
    features = tiny.batch(model.encoder_info)
    before, expected = tiny.values(model.weights), model(features)
    with model.without((0,)):
        model.fold()
    np.testing.assert_allclose(model(features), expected, atol=1e-5)
    model.unfold()
    for old, new in zip(before, tiny.values(model.weights), strict=True):
        np.testing.assert_array_equal(new, old)
    np.testing.assert_allclose(model(features), expected, atol=1e-5)


def test_a_merged_model_neither_trains_nor_is_saved(tmp_path):
    model = _random_model()
    model.fold()
    with pytest.raises(ValueError, match="unfold"):
        model.leave_out((0,))
    with pytest.raises(ValueError, match="unfold"):
        model(tiny.batch(model.encoder_info), training=True, seed=[0, 0])
    with pytest.raises(ValueError, match="unfold"):
        saving.save_adapter(model, tmp_path / "adapter")
    with pytest.raises(ValueError, match="unfold"):
        model.save(tmp_path / "model.keras")


def test_it_starts_as_in_peft():
    layer = LoRAUpdate(768, 768, rank=8, alpha=8.0)
    layer.build()
    down, up = tiny.values(layer.weights)
    bound = 1 / np.sqrt(768)  # Kaiming uniform with a = sqrt(5).
    assert 0.99 * bound < np.abs(down).max() <= bound
    np.testing.assert_allclose(down.std(), bound / np.sqrt(3), rtol=0.03)
    assert not up.any()
    # PEFT's count for BERT-base: query and value of twelve blocks.
    assert 12 * 2 * layer.count_params() == 294_912


def test_dropout_drops_elements_of_what_the_product_reads():
    x = np.ones((2, 3, 6), "float32")
    layer = LoRAUpdate(6, 5, rank=3, alpha=3.0, dropout_rate=0.5)
    layer.build()
    tiny.randomize(layer.weights)
    down, up = tiny.values(layer.weights)
    seeds = StatelessSeeds([1, 7])
    kept = dropout(x, 0.5, StatelessSeeds([1, 7]))
    assert set(np.unique(kept)) == {0.0, 2.0}
    np.testing.assert_allclose(
        layer.change(x, seeds), kept @ down @ up, rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(layer.change(x), x @ down @ up, atol=1e-6)


def test_no_gradient_of_the_size_of_a_kernel_is_made():
    """In a training step of a wide encoder it would cost as much as the layer.

    A width that nothing else has: a product of `d x d` would be of this shape.
    """
    layer = LoRAUpdate(67, 67, rank=2, alpha=2.0)
    layer.build()

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer.change(x) ** 2)
        return tape.gradient(loss, [v.value for v in layer.weights])

    graph = step.get_concrete_function(tf.TensorSpec((3, 5, 67))).graph
    shapes = [o.shape for op in graph.get_operations() for o in op.outputs]
    assert any(shape == (67, 2) for shape in shapes)
    assert not any(shape == (67, 67) for shape in shapes)


def test_keras_fit_trains_the_products_alone():
    model = adapt(tiny.encoder(), LoRA(rank=2), HEAD)
    features = tiny.batch(model.encoder_info, size=8)
    names = set(model.trained_variables())
    before = {v.path: v.numpy().copy() for v in model.weights}
    model.compile(
        keras.optimizers.Adam(0.05),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    labels = np.arange(8) % 2
    losses = model.fit(features, labels, epochs=10, verbose=0).history["loss"]
    assert losses[-1] < losses[0] - 0.1
    changed = {
        v.path
        for v in model.weights
        if not np.array_equal(v.numpy(), before[v.path])
    }
    assert changed == names


@pytest.mark.parametrize(
    "options", [{"projections": ("q",)}, {"projections": ()}, {"rank": 0}]
)
def test_options_that_mean_nothing_are_refused(options):
    with pytest.raises(ValueError, match="projections|rank"):
        adapt(tiny.encoder(), LoRA(**options))


@pytest.mark.parametrize(
    ("old", "new"), [("merge", "fold"), ("unmerge", "unfold")]
)
def test_the_old_names_of_folding_warn_and_work(old, new):
    model = adapt(tiny.encoder(), LoRA(rank=2))
    model.fold()
    is_folded = new == "fold"
    if is_folded:
        model.unfold()
    with pytest.warns(DeprecationWarning, match=rf"model\.{new}\(\)"):
        getattr(model, old)()
    assert model.reparameterization.folded == is_folded
    # The name of `is_folded` in slots of version 0.1.0.
    assert {slot.is_merged for slot in model.all_slots()} == {is_folded}
