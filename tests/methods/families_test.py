"""Tests each method on encoders whose blocks differ from BERT's."""

import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import tiny
from tests.methods.cases import CASES
from tests.methods.cases import ONE_OF_EACH
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common.errors import AdapterError
from tf_adapters.layers.slot import PROJECTIONS
from tf_adapters.models import fusion_model
from tf_adapters.models import saving
from tf_adapters.models.adapted_encoder import AdaptedEncoder
from tf_adapters.models.adapter_model import adapt
from tf_adapters.models.bank_model import load_bank
from tf_adapters.models.composed_model import compose
from tf_adapters.models.composition import Average

pytestmark = pytest.mark.integration

FAMILIES = ("mpnet", "albert", "deberta", "modernbert")
HEAD = heads.Classification(("no", "yes", "maybe"), dropout_rate=0.0)

# Where a case has no meaning. All blocks of ALBERT are one.
INSTEAD = {("albert", "top_layers"): methods.TopLayers(k=tiny.BLOCKS)}
# What a family refuses: ModernBERT has no biases.
REFUSED = ("modernbert", "bitfit")


@pytest.mark.parametrize("name", ONE_OF_EACH)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_method_trains_and_its_reload_is_exact(family, name, tmp_path):
    if (family, name) == REFUSED:
        pytest.skip("has a test of its own")
    method = INSTEAD.get((family, name)) or CASES[name][0]
    model = adapt(tiny.encoder(family), method, HEAD)
    features = tiny.batch(model.encoder_info)
    trained = model.trained_variables()
    tiny.randomize(v for k, v in trained.items() if "gamma" not in k)
    with tf.GradientTape() as tape:
        outputs = model(features, training=True, seed=[1, 2])
        loss = tf.reduce_sum(model.head.loss(np.array([0, 2, 1]), outputs))
    gradients = tape.gradient(loss, [v.value for v in trained.values()])
    for path, gradient in zip(trained, gradients, strict=True):
        # Closed gates have none. The softmax over keys does not depend on the
        # keys' bias.
        if name != "diff_pruning" and "key/bias" not in path.replace("--", "/"):
            assert np.abs(tf.convert_to_tensor(gradient)).max() > 0, path
    keras.optimizers.SGD(1e-3).apply(gradients, list(trained.values()))
    whole = model.encode(features)["first_token_output"]
    short = model.encode(features, first_token_only=True)
    np.testing.assert_allclose(short["first_token_output"], whole, atol=2e-5)
    saving.save_adapter(model, tmp_path / "adapter")
    again = saving.load_adapter(tmp_path / "adapter", tiny.encoder(family))
    np.testing.assert_array_equal(again(features), model(features))


@pytest.mark.parametrize("family", FAMILIES)
def test_fusion_and_bank_answer_as_their_members(family, tmp_path):
    folders = []
    for number in range(2):
        model = adapt(tiny.encoder(family), methods.Pfeiffer(units=4), HEAD)
        tiny.randomize(model.trained_variables().values(), seed=number)
        folders.append(str(tmp_path / str(number)))
        saving.save_adapter(model, tmp_path / str(number) / "adapter")
    bank = load_bank(folders, tiny.encoder(family))
    features = tiny.batch(bank.encoder_info)
    alone = [
        saving.load_adapter(f, tiny.encoder(family))(features) for f in folders
    ]
    mixed = bank({**features, "adapter_ids": np.array([1, 0, 1])})
    for row, number in enumerate((1, 0, 1)):
        np.testing.assert_allclose(mixed[row], alone[number][row], atol=1e-5)
    twin = str(tmp_path / "twin")
    shutil.copytree(folders[0], twin)
    method = methods.Fusion(adapters=(folders[0], twin))
    fused = fusion_model.fuse(tiny.encoder(family), method)
    # Of two equal members the mixture is the member, if V is the identity.
    for name, variable in fused.trained_variables().items():
        if "value" in name:
            variable.assign(np.eye(tiny.WIDTH))
    one = saving.load_adapter(folders[0], tiny.encoder(family), with_head=False)
    np.testing.assert_allclose(
        fused(features)["sequence_output"],
        one(features)["sequence_output"],
        atol=2e-5,
    )


def test_a_gated_lora_of_debertas_query_and_key_ignores_padding():
    """Both projections also read the table of positions, of eight rows."""
    method = methods.LoRA(rank=2, projections=("query", "key"), use_gating=True)
    model = adapt(tiny.encoder("deberta"), method, HEAD)
    tiny.randomize(model.trained_variables().values())
    features = tiny.batch(model.encoder_info, tokens=8)
    outputs = np.asarray(model(features))
    for row, mask in enumerate(features["padding_mask"]):
        alone = {
            name: value[[row], : mask.sum()] for name, value in features.items()
        }
        np.testing.assert_allclose(outputs[[row]], model(alone), atol=1e-5)


def test_a_bank_refuses_bitfit_on_deberta():
    """It trains the offset of the norm of positions, which all texts share."""
    encoder = tiny.encoder("deberta")
    model = adapt(encoder, methods.BitFit(), HEAD)
    assert any("rel_embeddings" in name for name in model.trained_variables())
    with pytest.raises(AdapterError, match="cannot hold it.*rel_embedd"):
        load_bank([model], encoder)


# Blocks of ALBERT share the kernels that a LoRA would be folded into.
@pytest.mark.parametrize("family", sorted({*FAMILIES} - {"albert"}))
def test_folding_a_lora_of_all_projections_changes_nothing(family):
    method = methods.LoRA(rank=2, projections=PROJECTIONS)
    model = adapt(tiny.encoder(family), method, HEAD)
    tiny.randomize(model.trained_variables().values())
    features = tiny.batch(model.encoder_info)
    before = np.asarray(model(features))
    kernels = tiny.values(model.encoder.backbone.weights)
    model.fold()
    np.testing.assert_allclose(model(features), before, atol=2e-5)
    folded = tiny.values(model.encoder.backbone.weights)
    changed = sum(
        not np.array_equal(old, new)
        for old, new in zip(kernels, folded, strict=True)
    )
    assert changed == len(PROJECTIONS) * tiny.BLOCKS


@pytest.mark.parametrize("family", FAMILIES)
def test_an_average_of_twins_answers_as_one(family, tmp_path):
    encoder = tiny.encoder(family)
    model = adapt(encoder, methods.Pfeiffer(units=4), HEAD)
    tiny.randomize(model.trained_variables().values())
    for name in ("one", "twin"):
        saving.save_adapter(model, tmp_path / name)
    both = str(tmp_path / "one"), str(tmp_path / "twin")
    features = tiny.batch(encoder)
    average = compose(encoder, Average(*both, weights=(3, 1)))
    np.testing.assert_allclose(average(features), model(features), atol=1e-5)


@pytest.mark.parametrize("family", ["mpnet", "deberta", "modernbert"])
def test_segments_are_ignored_where_there_are_none(family):
    encoder = AdaptedEncoder(tiny.encoder(family))
    features = tiny.batch(tiny.encoder(family))
    more = {**features, "segment_ids": features["padding_mask"]}
    np.testing.assert_array_equal(
        encoder(more)["sequence_output"], encoder(features)["sequence_output"]
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_a_keras_file_answers_as_the_model(family, tmp_path):
    model = adapt(tiny.encoder(family), methods.Houlsby(units=4), HEAD)
    tiny.randomize(model.trained_variables().values())
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    features = tiny.batch(model.encoder_info)
    np.testing.assert_array_equal(again(features), model(features))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision_is_close(family, policy):
    features = tiny.batch(tiny.encoder(family))
    whole, half = (
        np.asarray(
            keras.ops.cast(
                AdaptedEncoder(tiny.encoder(family, dtype=dtype))(features)[
                    "sequence_output"
                ],
                "float32",
            )
        )
        for dtype in ("float32", policy)
    )
    tokens = features["padding_mask"] == 1
    limit = 0.2 if policy == "mixed_bfloat16" else 0.02
    assert np.abs(whole - half)[tokens].max() < limit


@pytest.mark.parametrize("family", FAMILIES)
def test_gradients_are_the_same_if_activations_are_computed_again(family):
    encoder = tiny.encoder(family)
    features = tiny.batch(encoder)
    found = []
    for remat in (False, True):
        model = adapt(encoder, methods.Full(), remat=remat)
        variables = [v.value for v in model.trained_variables().values()]
        with tf.GradientTape() as tape:
            output = model(features, training=True, seed=[1, 2])
            loss = sum(tf.reduce_sum(value**3) for value in output.values())
        gradients = tape.gradient(loss, variables)
        found.append([tf.convert_to_tensor(g).numpy() for g in gradients])
    for plain, again in zip(*found, strict=True):
        scale = max(np.abs(plain).max(), 1)
        np.testing.assert_allclose(again, plain, rtol=0, atol=1e-5 * scale)
