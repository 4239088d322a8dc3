"""Tests the errors for adapters that cannot be merged."""

import pytest

from tests import tiny
from tests.merging import made_adapters
from tests.merging.made_adapters import made
import tf_adapters
from tf_adapters import methods
from tf_adapters.common.errors import UserError

PFEIFFER = methods.Pfeiffer(units=4)
LORA = methods.LoRA(rank=2)
OTHERS = {
    "norms": (methods.Houlsby(units=4), "mean", "weights of the encoder"),
    "another method": (LORA, "mean", "agree in their method"),
    "no sum of units": (methods.BitFit(), "mean", "houlsby, pfeiffer and lora"),
    "another width": (
        methods.Pfeiffer(units=3),
        "mean",
        "agree in their width",
    ),
    "another activation": (
        methods.Pfeiffer(units=4, activation="gelu"),
        "output_mean",
        "agree in their activation",
    ),
    "other blocks": (
        methods.Pfeiffer(units=4, leave_out=(0,)),
        "output_mean",
        "agree in their left-out blocks",
    ),
}
LORAS = {
    "gate": (methods.LoRA(rank=2, use_gating=True), "mean", "with a gate"),
    "another alpha": (
        methods.LoRA(rank=2, alpha=1.0),
        "mean",
        "agree in their alpha",
    ),
    "other projections": (
        methods.LoRA(rank=2, projections=("key",)),
        "output_mean",
        "agree in their projections",
    ),
}


def _refused(first, second, how, sentence):
    encoder = tiny.encoder()
    members = [
        made(encoder, method, name, 0)
        for method, name in ((first, "one"), (second, "two"))
    ]
    with pytest.raises(UserError, match=sentence):
        tf_adapters.merge_adapters(members, encoder, how)


@pytest.mark.parametrize("case", OTHERS)
def test_an_adapter_that_does_not_fit_a_bottleneck(case):
    _refused(PFEIFFER, *OTHERS[case])


@pytest.mark.parametrize("case", LORAS)
def test_an_adapter_that_does_not_fit_a_lora(case):
    _refused(LORA, *LORAS[case])


def test_widths_may_differ_where_outputs_are_summed():
    encoder = tiny.encoder()
    members = [
        made(encoder, methods.LoRA(rank=rank), f"rank_{rank}", 0)
        for rank in (1, 2)
    ]
    model = tf_adapters.merge_adapters(members, encoder, "output_mean")
    assert model.method.rank == 3


def test_a_rank_that_no_product_has():
    encoder = tiny.encoder(num_blocks=1)
    members = [
        made(encoder, methods.LoRA(rank=12), name, 0) for name in ("a", "b")
    ]
    with pytest.raises(UserError, match=f"at most {tiny.WIDTH}"):
        tf_adapters.merge_adapters(members, encoder, "output_mean", rank=20)


def test_another_encoder():
    members = [
        made(tiny.encoder(seed=seed), PFEIFFER, f"m{seed}", 0)
        for seed in (0, 1)
    ]
    with pytest.raises(UserError, match="Give the same encoder"):
        tf_adapters.merge_adapters(members, tiny.encoder())


def test_an_adapter_that_is_stacked_on_another():
    encoder = tiny.encoder()
    below = made(encoder, PFEIFFER, "below", 0)
    top = tf_adapters.compose(encoder, tf_adapters.Stack(below, PFEIFFER))
    with pytest.raises(UserError, match="on top of other adapters"):
        tf_adapters.merge_adapters([below, top], encoder)


def test_blocks_that_were_left_out_later():
    encoder, members = made_adapters.two("pfeiffer")
    members[0].leave_out([1])
    with pytest.raises(
        UserError, match="left out of blocks .* after its training"
    ):
        tf_adapters.merge_adapters(members, encoder)


def test_a_damaged_folder(tmp_path):
    encoder, (one, _) = made_adapters.two("pfeiffer")
    tf_adapters.save_adapter(one, tmp_path / "one")
    weights = tmp_path / "one" / "adapter.safetensors"
    weights.write_bytes(weights.read_bytes()[:-8])
    with pytest.raises(UserError, match="truncated or damaged"):
        tf_adapters.merge_adapters([tmp_path / "one"], encoder)


ARGUMENTS = {
    "unknown way": ({"how": "median"}, "way to merge"),
    "no weights of a sum": ({"how": "output_sum"}, "needs a number for each"),
    "too few weights": ({"weights": (1,)}, "needs a number for each"),
    "no finite weight": ({"weights": (1, float("nan"))}, "finite numbers"),
    "no mean": ({"weights": (1, -1)}, "sum to 0"),
    "no texts": ({"how": "matched_mean"}, "needs texts"),
    "rank of a bottleneck": ({"how": "output_mean", "rank": 2}, "of LoRAs"),
    "head of none": ({"head_of": "c"}, "must be one of the merged"),
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_an_argument_that_is_wrong(case):
    options, sentence = ARGUMENTS[case]
    encoder, members = made_adapters.two("pfeiffer")
    with pytest.raises(UserError, match=sentence):
        tf_adapters.merge_adapters(members, encoder, **options)


def test_texts_that_are_all_padding():
    encoder, members = made_adapters.two("pfeiffer")
    inputs = tiny.batch(encoder)
    inputs["padding_mask"] = 0 * inputs["padding_mask"]
    with pytest.raises(UserError, match="needs texts"):
        tf_adapters.merge_adapters(
            members, encoder, "matched_mean", inputs=inputs
        )


def test_a_search_of_a_mean():
    encoder, members = made_adapters.two("pfeiffer")
    with pytest.raises(UserError, match="`how` of a search for weights"):
        tf_adapters.search_weights(members, encoder, lambda m: 0.0, "mean")


def test_no_adapters():
    with pytest.raises(UserError, match="No trained adapters"):
        tf_adapters.merge_adapters([], tiny.encoder())
