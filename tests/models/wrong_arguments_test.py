"""Tests that arguments of a wrong type or shape end in a sentence."""

import dataclasses
import os
import types

import numpy as np
import pandas as pd
import pytest

from tests import tiny
import tf_adapters
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common.errors import UserError

HEAD = heads.Classification(("no", "yes"))
NAN = float("nan")


@pytest.fixture(scope="module")
def made():
    """Two adapters and two LoRAs, and a bank of the adapters."""
    encoder = tiny.encoder(num_blocks=1)
    bottleneck, lora = methods.Pfeiffer(units=2), methods.LoRA(rank=1)
    a, b, c, d = (
        tf_adapters.adapt(encoder, method, HEAD, name=name)
        for name, method in zip(
            "abcd", (bottleneck, bottleneck, lora, lora), strict=True
        )
    )
    bank = tf_adapters.load_bank([a, b], encoder, capacity=4)
    features = tiny.batch(encoder)
    return types.SimpleNamespace(**locals())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: methods.Pfeiffer(units="8"), "`units` of Pfeiffer must be"),
        (
            lambda: methods.Pfeiffer(reduction_factor="16"),
            "`reduction_factor` of Pfeiffer must be",
        ),
        (lambda: methods.Union(methods.LoRA()), "single method in brackets"),
        (
            lambda: methods.MultiTask(adapter="pfeiffer"),
            "`adapter` must be a method",
        ),
    ],
)
def test_settings_of_methods(make, message):
    with pytest.raises(UserError, match=message):
        make()


def test_a_fusion_without_members(made):
    for make in (tf_adapters.adapt, tf_adapters.AdapterModel):
        with pytest.raises(UserError, match="needs trained adapters.*fuse"):
            make(made.encoder, methods.Fusion(), HEAD)


@pytest.mark.parametrize("blocks", [0, "0", [0.0], [True, False], {0: 1}])
def test_blocks_to_leave_out(made, blocks):
    with pytest.raises(UserError, match="`blocks` must be a list of integers"):
        made.a.leave_out(blocks)


def test_a_block_that_is_no_number(made):
    with pytest.raises(UserError, match="nothing at `after_ffn` in block '0'"):
        made.a.slot_weights("0", "after_ffn")


@pytest.mark.parametrize("weights", [0.5, {"a": 1}, ["x", "y"], (NAN, 1)])
def test_weights(made, weights):
    message = "`weights` must be a list of finite numbers"
    with pytest.raises(UserError, match=message):
        tf_adapters.Average(made.a, made.b, weights=weights)
    with pytest.raises(UserError, match=message):
        tf_adapters.merge_adapters(
            [made.a, made.b], made.encoder, weights=weights
        )


def test_sizes_of_a_split(made):
    with pytest.raises(UserError, match="`batch_sizes` must be a list of int"):
        tf_adapters.BatchSplit(made.a, made.b, batch_sizes=2)


@pytest.mark.parametrize("rank", ["1", 1.0])
def test_ranks_of_a_merge(made, rank):
    with pytest.raises(UserError, match="`rank` is an integer"):
        tf_adapters.merge_adapters(
            [made.c, made.d], made.encoder, "output_mean", rank=rank
        )


def test_texts_are_no_inputs_of_a_merge(made):
    with pytest.raises(UserError, match="Expected a dict of token features"):
        tf_adapters.merge_adapters(
            [made.a, made.b], made.encoder, "matched_mean", inputs=["a text"]
        )


@pytest.mark.parametrize(
    "use",
    [
        tf_adapters.merge_adapters,
        tf_adapters.load_bank,
        lambda adapters, encoder: tf_adapters.fuse(encoder, adapters=adapters),
    ],
)
def test_an_encoder_with_its_tokenizer(made, use):
    with pytest.raises(UserError, match="Give the encoder alone"):
        use([made.a, made.b], (made.encoder, None))


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (
            lambda m, folder: tf_adapters.load_adapter(
                folder / "a", (m.encoder, None)
            ),
            "Give the encoder alone",
        ),
        (
            lambda m, folder: tf_adapters.save_adapter(m.both, folder / "b"),
            "`save_adapter` an `AdapterModel`.*of the `models`",
        ),
        (
            lambda m, folder: tf_adapters.save_adapter(m.bank, folder / "b"),
            "`save_adapter` an `AdapterModel`",
        ),
        (
            lambda m, folder: tf_adapters.swap_adapters(m.both, m.a),
            "`swap_adapters` an `AdapterModel`",
        ),
        (
            lambda m, folder: tf_adapters.trained_table(m.both),
            "`trained_table` an `AdapterModel`.*of the `models`",
        ),
        (
            lambda m, folder: tf_adapters.save_adapter(
                m.a, folder / "b", format="pefft"
            ),
            "Did you mean .peft.*Known: tf_adapters",
        ),
        (
            lambda m, folder: tf_adapters.compose(
                m.encoder, tf_adapters.Stack(m.pruned, m.a)
            ),
            "`d` changes the weights of the encoder .method diff_pruning",
        ),
    ],
)
def test_other_models_and_encoders(made, use, message, tmp_path):
    made.both = tf_adapters.compose(
        made.encoder, tf_adapters.Parallel(made.a, made.b)
    )
    made.pruned = tf_adapters.adapt(
        made.encoder, methods.DiffPruning(), HEAD, name="d"
    )
    with pytest.raises(UserError, match=message):
        use(made, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_labels_of_pandas_and_of_several_lengths(made):
    head = heads.MultiLabel(("x", "y"))
    model = tf_adapters.adapt(made.encoder, methods.IA3(), head)
    model.compile("adam", "mse", run_eagerly=True)
    table = pd.DataFrame({"x": [0, 1, 1], "y": [1, 0, 1]})
    model.fit(made.features, table, verbose=0)
    with pytest.raises(UserError, match="as many numbers in each row"):
        model.fit(made.features, [[0], [1, 0], [1]], verbose=0)


@pytest.mark.parametrize("capacity", ["3", 3.5, True])
def test_the_capacity_of_a_bank(made, capacity):
    with pytest.raises(UserError, match="`capacity` must be an integer"):
        tf_adapters.load_bank([made.a], made.encoder, capacity=capacity)


def test_the_name_of_an_adapter_in_a_bank(made):
    with pytest.raises(UserError, match="`name` must be a text"):
        made.bank.add(made.c, name=5)
    assert made.bank.names == ["a", "b"]


@pytest.mark.parametrize(
    "ids", [[0.0, 1.0, 0.0], [[0], [1], [0]], [0, 1], [0], 0]
)
def test_ids_of_adapters(made, ids):
    with pytest.raises(UserError, match=r"of shape \(batch,\)"):
        made.bank({**made.features, "adapter_ids": np.array(ids)})


@pytest.mark.parametrize("part", [0, np.s_[:, :0]])
def test_features_without_an_axis_or_tokens(made, part):
    features = {name: value[part] for name, value in made.features.items()}
    with pytest.raises(UserError, match="with one token or more"):
        made.a(features)


@dataclasses.dataclass
class _Folder(os.PathLike):
    """A path of another package, such as pytest's `py.path.local`."""

    path: str

    def __fspath__(self):
        return self.path


def test_paths_of_other_packages(made, tmp_path):
    tf_adapters.save_adapter(made.a, tmp_path / "one")
    one = _Folder(str(tmp_path / "one"))
    bank = tf_adapters.load_bank([one], made.encoder)
    assert bank.names == ["one"]
    stack = tf_adapters.compose(made.encoder, tf_adapters.Stack(one))
    assert [member.name for member in stack.members] == ["one"]
    merged = tf_adapters.merge_adapters(
        [one, made.b], made.encoder, head_of=str(tmp_path / "one")
    )
    assert merged.head == made.a.head


@pytest.mark.parametrize("kind", [np.int64, np.uint8])
def test_a_seed_of_numpy_is_one_of_python(made, kind):
    model = tf_adapters.adapt(made.encoder, methods.LoRA(), seed=kind(3))
    assert type(model.seed) is int
