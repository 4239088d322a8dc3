"""Tests fusions of trained adapters: stacking, saving, loading, errors."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import tiny
from tests.references import fusion_numpy as reference
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common import adapter_folder
from tf_adapters.layers.adapter_fusion import AdapterFusion
from tf_adapters.models import fusion_model
from tf_adapters.models import saving
from tf_adapters.models.adapter_model import adapt
from tf_adapters.models.variable_groups import count_weights

pytestmark = pytest.mark.integration

HEAD = heads.Classification(("no", "yes", "maybe"), dropout_rate=0.0)
D = tiny.WIDTH


def _member(folder, method, seed=1, encoder_seed=0):
    """Writes an adapter folder with large random weights."""
    model = adapt(tiny.encoder(seed=encoder_seed), method, HEAD)
    tiny.randomize(model.trained_variables().values(), seed=seed)
    saving.save_adapter(model, folder / "adapter")
    return str(folder)


@pytest.fixture
def folders(tmp_path):
    """Two runs' folders; the second member is narrower."""
    return [
        _member(tmp_path / "a", methods.Pfeiffer(units=4), seed=1),
        _member(tmp_path / "b", methods.Pfeiffer(units=3), seed=2),
    ]


def _fused(folders, seed=None, **options):
    method = methods.Fusion(adapters=tuple(folders), **options)
    model = fusion_model.fuse(tiny.encoder(), method, HEAD)
    if seed is not None:
        tiny.randomize(model.trained_variables().values(), seed=seed)
    return model


def test_facts_come_from_the_members(folders):
    method = _fused(folders).method
    assert method.adapters == ("a", "b")
    assert (method.placement, method.units) == ("pfeiffer", 4)
    assert method.activation == "relu"


def test_slots_compute_the_members_own_outputs(folders):
    """The fusion in a block is the plain formula over the saved weights."""
    model = _fused(folders, seed=5)
    layer = model.slots[1]["after_ffn"].fusion
    x = np.random.default_rng(1).normal(size=(6, D)).astype("float32")
    saved = [
        adapter_folder.read_tensors(f"{folder}/adapter/adapter.safetensors")
        for folder in folders
    ]
    parts = ("down_kernel", "down_bias", "up_kernel", "up_bias")
    expected, _ = reference.fusion(
        x.astype("float64"),
        [
            [tensors[f"block_1_after_ffn/delta/{part}"] for part in parts]
            for tensors in saved
        ],
        "relu",
        *(
            np.asarray(weight, "float64")
            for weight in (
                layer.query_kernel,
                layer.query_bias,
                layer.key_kernel,
                layer.value_kernel,
            )
        ),
    )
    np.testing.assert_allclose(layer(x[None])[0][0], expected, atol=1e-5)


def test_a_fusion_of_one_starts_as_that_adapter(folders):
    """With one member the weight is 1 and V is the identity, nearly."""
    alone = saving.load_adapter(f"{folders[0]}/adapter", tiny.encoder())
    model = _fused(folders[:1])
    features = tiny.batch(model.encoder_info)
    np.testing.assert_allclose(
        model.encoder(features)["sequence_output"],
        alone.encoder(features)["sequence_output"],
        atol=1e-3,
    )


@pytest.mark.parametrize("value", ["dynamic", "static"])
def test_number_of_trained_weights(folders, value):
    model = _fused(folders, value=value)
    fusion = (3 if value == "dynamic" else 2) * D * D + D
    head = 3 * (D + 1)
    trained = model.trained_variables().values()
    assert count_weights(trained) == tiny.BLOCKS * fusion + head
    groups = {name: trains for name, trains, _ in model.variable_groups()}
    assert groups["members"] is False


def test_training_leaves_members_and_encoder_alone(folders):
    model = _fused(folders)
    before = {v.path: v.numpy().copy() for v in model.variables}
    _train(model)
    changed = {
        v.path
        for v in model.variables
        if not np.array_equal(v.numpy(), before[v.path])
    }
    assert changed == set(model.trained_variables())


def _train(model, steps=2):
    optimizer = keras.optimizers.Adam(0.05)
    variables = list(model.trained_variables().values())
    features = tiny.batch(model.encoder_info)
    for step in range(steps):
        with tf.GradientTape() as tape:
            outputs = model(features, training=True, seed=[1, 1024 * step])
            losses = model.head.loss(np.array([0, 2, 1]), outputs)
            loss = tf.reduce_sum(losses) + model.penalty()
        gradients = tape.gradient(loss, [v.value for v in variables])
        optimizer.apply(gradients, variables)


def test_the_penalty_is_the_sum_over_blocks(folders):
    model = _fused(folders, seed=5, value_pull=0.5)
    expected = sum(
        0.5 * np.square(np.asarray(v) - np.eye(D)).sum()
        for name, v in model.trained_variables().items()
        if name.endswith("value_kernel")
    )
    assert expected > 1
    np.testing.assert_allclose(model.penalty(), expected, rtol=1e-5)


def test_probes_are_the_weights_of_the_members(folders):
    model = _fused(folders, seed=5)
    features = tiny.batch(model.encoder_info)
    probes = model.encoder(features, return_probes=True)["probes"]
    weights = np.asarray(probes[0]["after_ffn"]["fusion_weights"])
    assert weights.shape == (*features["token_ids"].shape, 2)
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
    assert weights.std() > 0.01


def test_reload_is_exact(folders, tmp_path):
    model = _fused(folders, seed=5)
    features = tiny.batch(model.encoder_info)
    saving.save_adapter(model, tmp_path / "fusion")
    tensors = adapter_folder.read_tensors(
        tmp_path / "fusion" / "adapter.safetensors"
    )
    assert not any("down_kernel" in name for name in tensors)
    loaded = saving.load_adapter(tmp_path / "fusion", tiny.encoder())
    np.testing.assert_array_equal(loaded(features), model(features))


def test_a_keras_file_holds_the_members_too(folders, tmp_path):
    model = _fused(folders, seed=5)
    features = tiny.batch(model.encoder_info)
    model.save(tmp_path / "fusion.keras")
    loaded = keras.saving.load_model(tmp_path / "fusion.keras")
    np.testing.assert_array_equal(loaded(features), model(features))


def test_members_may_move(folders, tmp_path):
    model = _fused(folders, seed=5)
    features = tiny.batch(model.encoder_info)
    saving.save_adapter(model, tmp_path / "fusion")
    (tmp_path / "a").rename(tmp_path / "moved")
    with pytest.raises(saving.AdapterError, match="`a` is no longer in"):
        saving.load_adapter(tmp_path / "fusion", tiny.encoder())
    loaded = saving.load_adapter(
        tmp_path / "fusion",
        tiny.encoder(),
        adapters=[tmp_path / "moved", tmp_path / "b"],
    )
    np.testing.assert_array_equal(loaded(features), model(features))


def test_members_in_another_order_or_number_are_refused(folders, tmp_path):
    saving.save_adapter(_fused(folders), tmp_path / "fusion")
    for given, message in (
        (folders[::-1], "other weights than the adapter `a`"),
        (folders[:1], "Trained over a, b. Received: 1"),
    ):
        with pytest.raises(saving.AdapterError, match=message):
            saving.load_adapter(
                tmp_path / "fusion", tiny.encoder(), adapters=given
            )


def test_members_that_moved_with_the_fusion_are_found(tmp_path):
    folders = [
        _member(tmp_path / "runs" / name, methods.Pfeiffer(units=4), seed=seed)
        for seed, name in enumerate("ab")
    ]
    model = _fused(folders, seed=5)
    saving.save_adapter(model, tmp_path / "runs" / "fusion" / "adapter")
    (tmp_path / "runs").rename(tmp_path / "moved")
    # Where they were is what a run's own configuration goes on to say.
    for given in (None, folders):
        loaded = saving.load_adapter(
            tmp_path / "moved/fusion/adapter", tiny.encoder(), given
        )
        assert loaded.members[1].folder == tmp_path / "moved" / "b" / "adapter"


def test_a_member_that_was_trained_again_is_refused(folders, tmp_path):
    saving.save_adapter(_fused(folders), tmp_path / "fusion")
    _member(tmp_path / "b", methods.Pfeiffer(units=3), seed=9)
    with pytest.raises(saving.AdapterError, match="adapter `b`"):
        saving.load_adapter(tmp_path / "fusion", tiny.encoder())


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (methods.Houlsby(units=4), "weights of the encoder too"),
        (methods.AdapterBias(), "only bottleneck adapters"),
        (methods.BitFit(), "only bottleneck adapters"),
        (
            methods.Houlsby(units=4, train_layer_norms=False),
            "agree in their placement",
        ),
        (
            methods.Pfeiffer(units=4, activation="tanh"),
            "agree in their activation",
        ),
        (methods.Pfeiffer(units=4, leave_out=(0,)), "left-out blocks"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_does_not_fit_is_refused(folders, tmp_path, method, message):
    other = _member(tmp_path / "other", method)
    with pytest.raises(saving.AdapterError, match=message):
        _fused([*folders, other])


def test_a_member_of_another_encoder_is_refused(folders, tmp_path):
    other = _member(
        tmp_path / "other", methods.Pfeiffer(units=4), encoder_seed=1
    )
    with pytest.raises(saving.AdapterError, match="Load that encoder"):
        _fused([*folders, other])


def test_no_members_at_all():
    with pytest.raises(saving.AdapterError, match="--adapters"):
        _fused([])


def test_blocks_may_be_left_out(folders):
    model = _fused(folders, leave_out=(1,))
    assert [set(block) for block in model.slots] == [{"after_ffn"}, set()]
    assert model.method.leave_out == (1,)


def test_houlsbys_adapters_fuse_at_both_places(tmp_path):
    method = methods.Houlsby(units=4, train_layer_norms=False)
    folders = [
        _member(tmp_path / name, method, seed)
        for seed, name in enumerate(("a", "b"))
    ]
    model = _fused(folders)
    assert model.method.placement == "houlsby"
    slots = [slot for block in model.slots for slot in block.values()]
    assert len(slots) == 2 * tiny.BLOCKS
    assert all(isinstance(slot.fusion, AdapterFusion) for slot in slots)


def test_config_round_trip(folders):
    method = _fused(folders).method
    assert methods.from_config(methods.to_config(method)) == method
    assert dataclasses.replace(method) == method


@pytest.mark.slow
def test_a_subset_takes_part_in_training_the_same_in_all_blocks(tmp_path):
    folders = [
        _member(tmp_path / name, methods.Pfeiffer(units=4), seed)
        for seed, name in enumerate("abc")
    ]
    model = _fused(folders, seed=5, subset=2)
    features = tiny.batch(model.encoder_info)
    seen = set()
    for step in range(20):
        outputs = model(features, training=True, seed=[1, 1024 * step])
        drawn = [
            names
            for names in (("a", "b"), ("a", "c"), ("b", "c"))
            if np.allclose(
                fusion_model.pruned(model, names)(features), outputs, atol=1e-5
            )
        ]
        assert len(drawn) == 1
        seen.update(drawn)
    assert len(seen) == 3
    assert np.abs(model(features) - outputs).max() > 1e-3


def test_a_subset_larger_than_the_set_is_refused(folders):
    with pytest.raises(ValueError, match="expected one of 1 to 2"):
        _fused(folders, subset=3)


def test_pruned_is_the_fusion_of_the_rest(folders, tmp_path):
    model = _fused(folders, seed=5)
    features = tiny.batch(model.encoder_info)
    smaller = fusion_model.pruned(model, ["b"])
    assert smaller.method.adapters == ("b",)
    expected = _fused(folders[1:])
    for name, variable in expected.trained_variables().items():
        variable.assign(model.trained_variables()[name])
    np.testing.assert_allclose(smaller(features), expected(features), atol=1e-6)
    saving.save_adapter(smaller, tmp_path / "pruned")
    loaded = saving.load_adapter(tmp_path / "pruned", tiny.encoder())
    np.testing.assert_array_equal(loaded(features), smaller(features))


def test_pruned_leaves_out_the_same_blocks(folders):
    model = _fused(folders, seed=5)
    features = tiny.batch(model.encoder_info)
    complete = np.asarray(model(features))
    model.leave_out([0])
    smaller = fusion_model.pruned(model, ["a", "b"])
    assert smaller.left_out == (0,)
    np.testing.assert_array_equal(smaller(features), model(features))
    assert np.abs(smaller(features) - complete).max() > 1e-3


def test_pruning_what_is_not_there_is_refused(folders):
    model = _fused(folders)
    for names in (["c"], []):
        with pytest.raises(ValueError, match="one or more of a, b"):
            fusion_model.pruned(model, names)


def test_adapt_reads_no_members(folders):
    method = methods.Fusion(adapters=tuple(folders))
    with pytest.raises(ValueError, match="tf_adapters.fuse"):
        adapt(tiny.encoder(), method, HEAD)


def test_a_fusion_that_lost_its_members_is_not_saved(folders, tmp_path):
    _fused(folders).save(tmp_path / "fusion.keras")
    loaded = keras.saving.load_model(tmp_path / "fusion.keras")
    with pytest.raises(saving.AdapterError, match="a .keras file"):
        saving.save_adapter(loaded, tmp_path / "fusion")


def test_members_of_one_name_are_reported_apart(tmp_path):
    method = methods.Pfeiffer(units=4)
    runs = [
        _member(tmp_path / seed / "sst2", method, seed=i)
        for i, seed in enumerate(("s0", "s1"))
    ]
    model = _fused(runs, seed=5)
    assert model.method.adapters == ("s0/sst2", "s1/sst2")
    kept = fusion_model.pruned(model, ["s1/sst2"]).members
    assert [member.name for member in kept] == ["s1/sst2"]
    with pytest.raises(saving.AdapterError, match="given twice"):
        _fused([runs[0], runs[0]])


def test_a_member_that_moved_keeps_its_name(folders, tmp_path):
    saving.save_adapter(_fused(folders), tmp_path / "fusion")
    (tmp_path / "a").rename(tmp_path / "moved")
    loaded = saving.load_adapter(
        tmp_path / "fusion",
        tiny.encoder(),
        adapters=[tmp_path / "moved", tmp_path / "b"],
    )
    assert len(fusion_model.pruned(loaded, ["a"]).members) == 1
