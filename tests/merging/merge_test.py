"""Compares merged adapters with NumPy and with their members' outputs."""

import json

import keras
import numpy as np
import pytest

from tests import tiny
from tests.merging import made_adapters
from tests.merging.made_adapters import HEAD
from tests.merging.made_adapters import METHODS
from tests.merging.made_adapters import logits
from tests.merging.made_adapters import tensors
import tf_adapters
from tf_adapters import methods

BOTTLENECKS = ("houlsby", "pfeiffer")


@pytest.mark.parametrize("method", METHODS)
def test_a_mean_is_that_of_each_weight(method):
    encoder, members = made_adapters.two(method)
    model = tf_adapters.merge_adapters(members, encoder, weights=(3, 1))
    one, two = map(tensors, members)
    for name, value in tensors(model).items():
        wanted = 0.75 * one[name] + 0.25 * two[name]
        if name.startswith("head/"):
            wanted = two[name]
        np.testing.assert_allclose(value, wanted, atol=1e-6)


def test_a_sums_weights_stay_as_they_are():
    encoder, members = made_adapters.two("pfeiffer")
    model = tf_adapters.merge_adapters(members, encoder, "sum", (0.5, -2))
    one, two = map(tensors, members)
    name = "block_1_after_ffn/delta/down_kernel"
    np.testing.assert_allclose(
        tensors(model)[name], 0.5 * one[name] - 2 * two[name], atol=1e-6
    )


def test_the_head_is_that_of_the_member_that_is_named():
    encoder, members = made_adapters.two("pfeiffer")
    model = tf_adapters.merge_adapters(members, encoder, head_of=members[0])
    np.testing.assert_array_equal(
        tensors(model)["head/kernel"], tensors(members[0])["head/kernel"]
    )


def test_no_other_head_is_read(tmp_path):
    encoder, (one, two) = made_adapters.two("pfeiffer")
    tf_adapters.save_adapter(one, tmp_path / "one")
    path = tmp_path / "one" / "adapter_config.json"
    config = json.loads(path.read_text())
    config["head"]["name"] = "of_a_package_that_is_not_installed"
    path.write_text(json.dumps(config))
    model = tf_adapters.merge_adapters([tmp_path / "one", two], encoder)
    np.testing.assert_array_equal(
        tensors(model)["head/kernel"], tensors(two)["head/kernel"]
    )


def test_the_order_of_blocks_that_are_left_out_is_the_same_adapter():
    encoder = tiny.encoder(num_blocks=3)
    members = [
        made_adapters.made(
            encoder, methods.Pfeiffer(units=4, leave_out=blocks), name, 0
        )
        for name, blocks in (("a", (0, 1)), ("b", (1, 0)))
    ]
    model = tf_adapters.merge_adapters(members, encoder)
    assert len(model.all_slots()) == 1


@pytest.mark.parametrize("method", BOTTLENECKS)
def test_a_shuffled_copy_is_recovered_by_matching_and_not_without(method):
    encoder = tiny.encoder()
    one = made_adapters.made(encoder, METHODS[method], "one", 5)
    two = made_adapters.shuffled(one, "two")
    np.testing.assert_allclose(logits(two), logits(one), atol=1e-5)
    matched = tf_adapters.merge_adapters(
        [two, one],
        encoder,
        "matched_mean",
        inputs=tiny.batch(encoder, size=20, seed=1),
    )
    wanted = tensors(one)
    for name, value in tensors(matched).items():
        np.testing.assert_allclose(value, wanted[name], atol=1e-6)
    plain = tf_adapters.merge_adapters([two, one], encoder)
    assert np.abs(logits(plain) - logits(one)).max() > 0.05


def test_a_loras_shuffled_and_turned_ranks_are_recovered_by_matching():
    encoder = tiny.encoder()
    one = made_adapters.made(encoder, METHODS["lora"], "one", 5)
    two = made_adapters.shuffled(one, "two", signs=True)
    np.testing.assert_allclose(logits(two), logits(one), atol=1e-5)
    matched = tf_adapters.merge_adapters([two, one], encoder, "matched_mean")
    wanted = tensors(one)
    for name, value in tensors(matched).items():
        np.testing.assert_allclose(value, wanted[name], atol=1e-6)
    plain = tf_adapters.merge_adapters([two, one], encoder)
    assert np.abs(logits(plain) - logits(one)).max() > 0.05


def _outputs_in(models, place):
    """Returns the outputs of each model's slot for the same vectors."""
    x = np.random.default_rng(0).normal(size=(2, 5, tiny.WIDTH))
    x = x.astype("float32")
    return x, [
        keras.ops.convert_to_numpy(m.slots[0][place](x, context=None)[0])
        for m in models
    ]


def test_an_output_mean_computes_the_mean_of_what_its_members_compute():
    encoder = tiny.encoder()
    narrow = methods.Houlsby(units=2, train_layer_norms=False)
    members = [
        made_adapters.made(encoder, method, name, i)
        for i, (name, method) in enumerate(
            {"a": METHODS["houlsby"], "b": narrow}.items()
        )
    ]
    model = tf_adapters.merge_adapters(
        members, encoder, "output_mean", weights=(1, 3)
    )
    assert model.method.units == 6
    _, (one, two, mean) = _outputs_in([*members, model], "after_ffn")
    np.testing.assert_allclose(mean, 0.25 * one + 0.75 * two, atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_an_output_mean_answers_as_the_average_in_memory(method):
    encoder, members = made_adapters.two(method)
    average = tf_adapters.compose(encoder, tf_adapters.Average(*members))
    model = tf_adapters.merge_adapters(members, encoder, "output_mean")
    np.testing.assert_allclose(logits(model), logits(average), atol=1e-5)
    mean = tf_adapters.merge_adapters(members, encoder)
    assert np.abs(logits(mean) - logits(average)).max() > 1e-3


def test_a_negated_bottleneck_takes_away_what_it_added():
    encoder, (one, two) = made_adapters.two("houlsby")
    model = tf_adapters.merge_adapters(
        [one], encoder, "output_sum", weights=[-1]
    )
    x, (plus, minus) = _outputs_in([one, model], "after_attention")
    np.testing.assert_allclose(minus - x, x - plus, atol=1e-5)
    assert np.abs(minus - x).max() > 0.1


@pytest.mark.parametrize("method", METHODS)
def test_an_adapter_minus_itself_is_none(method):
    encoder, (one, _) = made_adapters.two(method)
    copy = made_adapters.copy_with(one, "copy", lambda name, array: array)
    model = tf_adapters.merge_adapters(
        [copy, one], encoder, "output_sum", weights=(-1, 1)
    )
    bare = tf_adapters.adapt(encoder, methods.HeadOnly(), HEAD)
    for name, variable in bare.trained_variables().items():
        variable.assign(tensors(one)[name])
    np.testing.assert_allclose(logits(model), logits(bare), atol=1e-5)
    assert np.abs(logits(one) - logits(bare)).max() > 0.05


def test_ranks_are_cut_to_the_nearest_product():
    encoder, members = made_adapters.two("lora")
    model = tf_adapters.merge_adapters(
        members, encoder, "output_sum", weights=(1, -0.5), rank=2
    )
    assert model.method.rank == 2
    found, one, two = map(tensors, (model, *members))

    def product(weights, slot):
        return weights[f"{slot}/down_kernel"] @ weights[f"{slot}/up_kernel"]

    for slot in ("block_0_query", "block_1_ffn_down"):
        # alpha / rank of the members is 2, of the result 1.
        whole = 2 * product(one, slot) - product(two, slot)
        u, values, vh = np.linalg.svd(whole)
        nearest = (u[:, :2] * values[:2]) @ vh[:2]
        np.testing.assert_allclose(product(found, slot), nearest, atol=1e-5)


def test_a_merged_adapter_is_saved_loaded_and_put_into_a_bank(tmp_path):
    encoder, members = made_adapters.two("pfeiffer")
    for model in members:
        tf_adapters.save_adapter(model, tmp_path / model.name)
    folders = [tmp_path / "a", tmp_path / "b"]
    model = tf_adapters.merge_adapters(
        folders, encoder, "output_mean", head_of=folders[0]
    )
    tf_adapters.save_adapter(model, tmp_path / "merged")
    loaded = tf_adapters.load_adapter(tmp_path / "merged", tiny.encoder())
    np.testing.assert_array_equal(logits(loaded), logits(model))
    bank = tf_adapters.load_bank(
        [tmp_path / "merged", tmp_path / "b"], tiny.encoder()
    )
    batch = tiny.batch(encoder)
    ids = np.zeros(len(batch["token_ids"]), "int32")
    np.testing.assert_allclose(
        bank({**batch, "adapter_ids": ids}), logits(model), atol=1e-5
    )
