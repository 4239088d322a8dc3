"""Tests that models behave as users of Keras expect."""

import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import tiny
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.models import fusion_model
from tf_adapters.models import saving
from tf_adapters.models.adapter_model import AdapterModel
from tf_adapters.models.adapter_model import adapt
from tf_adapters.models.bank_model import load_bank
from tf_adapters.models.variable_groups import trained_table

HEAD = heads.Classification(("no", "yes"), dropout_rate=0.0)
LABELS = np.array([0, 1, 0, 1])


def _model(method=None, encoder=None, **options):
    encoder = tiny.encoder(num_blocks=1) if encoder is None else encoder
    model = adapt(encoder, method or methods.Houlsby(units=4), HEAD, **options)
    tiny.randomize(model.trained_variables().values())
    return model


def _compiled(model, optimizer="sgd"):
    model.compile(
        optimizer,
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    return model


def _batch(model):
    return tiny.batch(model.encoder_info, size=4)


def _two_devices():
    # Collectives are numbered alike in all strategies of a process, and those
    # of another test have other shapes.
    return tf.distribute.MirroredStrategy(
        ["CPU:0", "CPU:1"],
        cross_device_ops=tf.distribute.ReductionToOneDevice(),
    )


def test_the_penalty_counts_once_whatever_the_number_of_replicas():
    found = []
    for strategy in (tf.distribute.get_strategy(), _two_devices()):
        with strategy.scope():
            method = methods.Fusion(("a", "b"), units=2, value_pull=1.0)
            model = AdapterModel(tiny.encoder(num_blocks=1), method, HEAD)
            tiny.randomize(model.weights)
            _compiled(model)
        arguments = (_batch(model), LABELS)
        history = model.fit(*arguments, batch_size=4, verbose=0).history
        loss = model.evaluate(*arguments, batch_size=4, verbose=0)
        found.append([history["loss"][0], loss, *tiny.values(model.weights)])
    assert found[0][0] > 20  # The penalty is most of it.
    for one, two in zip(*found, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-5)


def test_replicas_draw_masks_of_their_own():
    strategy = _two_devices()
    with strategy.scope():
        model = _model(encoder=tiny.encoder(dropout=0.5, num_blocks=1))
    features = _batch(model)

    @tf.function
    def run():
        return strategy.run(model, (features,), {"training": True})

    first, second = strategy.experimental_local_results(run())
    assert np.abs(first - second).max() > 1e-2


def test_leaving_out_reaches_what_keras_has_traced():
    model = _compiled(_model())
    features = _batch(model)
    before = model.predict(features, verbose=0)
    loss = model.evaluate(features, LABELS, verbose=0)
    model.leave_out((0,))
    after = model.predict(features, verbose=0)
    assert np.abs(after - before).max() > 1e-2
    np.testing.assert_allclose(after, model(features), atol=1e-6)
    assert abs(model.evaluate(features, LABELS, verbose=0) - loss) > 1e-3


def test_what_was_left_out_is_saved_so(tmp_path):
    model = _model(encoder=tiny.encoder())
    model.leave_out((1,))
    expected = np.asarray(model(_batch(model)))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    saving.save_adapter(model, tmp_path / "adapter")
    read = saving.load_adapter(tmp_path / "adapter", tiny.encoder())
    # Norms that trained are the encoder's, which `read` has for its own.
    for other in (loaded, read):
        assert other.left_out == (1,)
        np.testing.assert_allclose(other(_batch(model)), expected, atol=1e-6)


def test_a_bank_and_a_fusion_leave_out_what_their_members_do(tmp_path):
    for name in ("a", "b"):
        model = _model(methods.Pfeiffer(units=4), tiny.encoder())
        model.leave_out((0,))
        saving.save_adapter(model, tmp_path / name)
    folders = [tmp_path / "a", tmp_path / "b"]
    bank = load_bank(folders, tiny.encoder())
    features = {**_batch(model), "adapter_ids": np.ones(4, "int32")}
    np.testing.assert_allclose(bank(features), model(features), atol=1e-6)
    fused = fusion_model.fuse(tiny.encoder(), adapters=folders)
    assert [bool(slots) for slots in fused.slots] == [False, True]


def test_nothing_to_leave_out_is_said():
    model = _model(methods.BitFit())
    with pytest.raises(ValueError, match="BitFit adds nothing to the blocks"):
        model.leave_out((0,))


def test_trainable_thaws_what_is_declared_and_nothing_else():
    model = _model()
    declared = {v.path for v in model.trainable_variables}
    assert declared == set(model.trained_variables())
    model.trainable = False
    assert not model.trainable_variables
    assert set(model.trained_variables()) == declared
    model.trainable = True
    assert {v.path for v in model.trainable_variables} == declared
    assert sum(v.trainable for v in model.weights) == len(declared)


def test_a_frozen_model_says_so():
    model = _compiled(_model())
    model.head_layer.trainable = False
    rows = [line.split() for line in trained_table(model).splitlines()]
    assert ["head", "frozen"] in [row[:2] for row in rows]
    count = sum(math.prod(v.shape) for v in model.trainable_variables)
    assert rows[-1][-2] == f"{count:,}"
    model.trainable = False
    with pytest.raises(ValueError, match=r"frozen. Set `model.trainable = Tr"):
        model.fit(_batch(model), LABELS, verbose=0)


def test_fit_after_trainable_changes_what_is_declared_only():
    model = _compiled(_model())
    frozen = list(model.non_trainable_weights)
    before = tiny.values(frozen)
    model.trainable = False
    model.trainable = True
    model.fit(_batch(model), LABELS, verbose=0)
    for a, b in zip(before, tiny.values(frozen), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_part_can_be_frozen_and_is_saved_all_the_same(tmp_path):
    model = _compiled(_model())
    model.head_layer.trainable = False
    before = tiny.values(model.head_layer.weights)
    model.fit(_batch(model), LABELS, verbose=0)
    for a, b in zip(before, tiny.values(model.head_layer.weights), strict=True):
        np.testing.assert_array_equal(a, b)
    saving.save_adapter(model, tmp_path / "adapter")
    fresh = tiny.encoder(num_blocks=1)
    loaded = saving.load_adapter(tmp_path / "adapter", fresh)
    np.testing.assert_allclose(
        loaded(_batch(model)), model(_batch(model)), atol=1e-6
    )


@pytest.mark.parametrize("method", [methods.Full(), methods.Houlsby(units=4)])
def test_layers_of_the_encoder_can_be_frozen(method):
    encoder = tiny.encoder()
    # What is frozen before there is a model says nothing of it.
    encoder.backbone.get_layer("token_embedding").trainable = False
    model = _compiled(_model(method, encoder))
    declared = len(model.trainable_variables)
    assert declared == len(model.trained_variables())
    model.encoder.backbone.token_embedding.trainable = False
    model.encoder.blocks[0].trainable = False
    frozen = [
        *model.encoder.backbone.token_embedding.weights,
        *model.encoder.blocks[0].weights,
    ]
    before = tiny.values(frozen)
    model.fit(_batch(model), LABELS, verbose=0)
    for a, b in zip(before, tiny.values(frozen), strict=True):
        np.testing.assert_array_equal(a, b)
    paths = {variable.path for variable in model.trainable_variables}
    assert model.encoder.blocks[1].ffn_norm.gamma.path in paths
    model.trainable = False
    model.trainable = True
    assert len(model.trainable_variables) == declared


def test_another_model_of_the_encoder_leaves_the_first_ones_flags():
    encoder = tiny.encoder(num_blocks=1)
    first = _compiled(adapt(encoder, methods.Houlsby(units=4), HEAD))
    declared = {v.path for v in first.trainable_variables}
    second = adapt(encoder, methods.LoRA(), HEAD)
    assert {v.path for v in first.trainable_variables} == declared
    assert len(second.trainable_variables) == 4 + 2
    norm = encoder.backbone.get_layer("embeddings_layer_norm").gamma
    before = tiny.values([norm])
    first.fit(_batch(first), LABELS, verbose=0)
    assert not np.array_equal(before[0], tiny.values([norm])[0])


def test_seeds_of_dropout_that_are_far_apart_differ():
    """They met at 32,768."""
    drawn = []
    for seed in (0, 32768, 65536, 2**31, 2**32 - 1):
        first, second = np.asarray(_model(seed=seed)._draw_seed())
        drawn.append((first // 4, second // 1024))
    assert len(set(drawn)) == len(drawn)


def test_the_configuration_has_what_keras_and_we_were_given():
    model = _model(seed=7, name="mine", dtype="mixed_bfloat16")
    again = type(model).from_config(model.get_config())
    assert (again.seed, again.name) == (7, "mine")
    assert again.dtype_policy == model.dtype_policy
    assert again.get_config() == model.get_config()


@pytest.mark.parametrize(
    "method", [methods.Houlsby(4), methods.PrefixTuning(3, form="peft")]
)
def test_left_padding_counts_from_the_first_token_in_roberta(method):
    model = _model(method, tiny.encoder("roberta", num_blocks=1))
    encoded = model.encode
    right = {
        "token_ids": np.array([[5, 6, 7, 0, 0]]),
        "padding_mask": np.array([[1, 1, 1, 0, 0]]),
    }
    left = {name: np.roll(value, 2, 1) for name, value in right.items()}
    np.testing.assert_allclose(
        encoded(left)["sequence_output"][:, 2:],
        encoded(right)["sequence_output"][:, :3],
        atol=1e-5,
    )


def _with_a_mask_of(encoder, shape):
    return {**tiny.batch(encoder), "padding_mask": np.ones(shape, "int32")}


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (
            lambda e: adapt("minilm", methods.BitFit()),
            "what `tf_adapters.load",
        ),
        (
            lambda e: adapt((e, None), methods.BitFit()),
            "the encoder alone",
        ),
        (lambda e: adapt(e, None), "Expected as `method` one of"),
        (lambda e: adapt(e, "houlsby"), "Received: 'houlsby'. The methods are"),
        (lambda e: adapt(e, methods.Houlsby), "methods.Houlsby.units=64."),
        (lambda e: adapt(e, methods.Houlsby(), 2), "Expected as `head` one of"),
        (lambda e: _model(encoder=e, seed=2**32), "0 to 4,294,967,295. Receiv"),
        (lambda e: _model(encoder=e, seed="a"), "an integer from 0 to .*'a'"),
        (
            lambda e: fusion_model.fuse(e, methods.Pfeiffer()),
            "Expected as `method` a `tf_adapters.methods.Fusion`",
        ),
        (
            lambda e: _model(encoder=e)({"token_ids": np.ones((1, 3))}),
            "The inputs lack `padding_mask`, `segment_ids`",
        ),
        (lambda e: _model(encoder=e)(np.ones((1, 3))), "Expected a dict"),
        (
            lambda e: _model(encoder=e)(tiny.batch(e, tokens=33)),
            "have 33 tokens, padding included, .* has positions for 32",
        ),
        (
            lambda e: adapt(e, methods.PromptTuning(32, form="peft")),
            "has 32 positions, .* takes 32 of them, so that none is left",
        ),
        (lambda e: load_bank("runs/one", e), "a list .* one, 'runs/one'. Put"),
        (lambda e: load_bank(_model(encoder=e), e), "one, 'adapter_model"),
        (
            lambda e: fusion_model.fuse(e, adapters="runs/one"),
            "a list .* one, 'runs/one'. Put",
        ),
        (
            lambda e: _model(encoder=e)(_with_a_mask_of(e, (4, 7))),
            r"one shape.* `padding_mask` \(4, 7\), .*`token_ids` \(3, 7\)",
        ),
        (
            lambda e: _model(encoder=e)(_with_a_mask_of(e, (3, 1))),
            r"one shape.* `padding_mask` \(3, 1\)",
        ),
        (
            lambda e: _model(encoder=e).predict(
                _with_a_mask_of(e, (3, 8)), verbose=0
            ),
            r"one shape.* `padding_mask` \(\w+, 8\)",
        ),
        (
            lambda e: _model(encoder=e).slot_weights(0, "after_lunch"),
            "block 0 after_attention, block 0 after_ffn",
        ),
    ],
)
def test_what_one_tries_first_is_answered_in_a_sentence(attempt, message):
    with pytest.raises(ValueError, match=message):
        attempt(tiny.encoder(num_blocks=1))


def test_weights_of_a_slot_by_name():
    model = _model()
    found = model.slot_weights(0, "after_ffn")
    assert list(found) == [
        f"delta/{side}_{part}"
        for side in ("down", "up")
        for part in ("kernel", "bias")
    ]
    stored = model.trained_variables()
    assert stored["block_0_after_ffn/delta/up_bias"] is found["delta/up_bias"]


def test_models_in_memory_are_members_like_folders(tmp_path):
    encoder = tiny.encoder()
    models = [
        _model(methods.Pfeiffer(units=4), encoder, name=name)
        for name in ("one", "two")
    ]
    tiny.randomize(models[1].trained_variables().values(), seed=9)
    for model in models:
        saving.save_adapter(model, tmp_path / model.name)
    folders = [tmp_path / model.name for model in models]
    features = _batch(models[0])
    ids = {"adapter_ids": np.array([0, 1, 1, 0], "int32")}

    def fused_outputs(adapters):
        fused = fusion_model.fuse(encoder, adapters=adapters)
        return fused(features)["pooled_output"]

    def bank_outputs(adapters):
        return load_bank(adapters, encoder)({**features, **ids})

    for make in (bank_outputs, fused_outputs):
        keras.utils.set_random_seed(0)
        expected = np.asarray(make(folders))
        keras.utils.set_random_seed(0)
        np.testing.assert_array_equal(make(models), expected)
    fused = fusion_model.fuse(encoder, adapters=models)
    assert fused.method.adapters == ("one", "two")
    with pytest.raises(saving.AdapterError, match="is a model in memory"):
        saving.save_adapter(fused, tmp_path / "fused")


@pytest.mark.parametrize("shape", [(4, 6), (4, 1), (1, 7)])
def test_a_graph_of_any_shape_refuses_a_mask_of_another(shape):
    model = _model()
    any_shape = {
        name: tf.TensorSpec([None, None], tf.int32) for name in _batch(model)
    }
    graph = tf.function(lambda features: model(features), [any_shape])
    right = _batch(model)
    np.testing.assert_allclose(graph(right), model(right), atol=1e-5)
    with pytest.raises(tf.errors.InvalidArgumentError):
        graph({**right, "padding_mask": np.ones(shape, "int32")})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("token_ids", -1),
        ("token_ids", tiny.VOCABULARY),
        ("padding_mask", 2),
        ("padding_mask", -1),
        ("segment_ids", 9),
    ],
)
def test_arrays_with_numbers_out_of_range_are_refused(name, value):
    model = _model()
    features = _batch(model)
    features[name][1, 2] = value
    for use in (model, model.predict):
        with pytest.raises(ValueError, match=f"`{name}` must hold integers"):
            use(features)
