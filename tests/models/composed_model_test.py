"""Compares compositions with the `adapters` library, and tests training.

`tests/fixtures/make_composition_fixtures.py` made the fixtures.
"""

import dataclasses
import json
from pathlib import Path
import shutil

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file
import tensorflow as tf

from tests import stored
from tests import tiny
import tf_adapters
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import UserError
from tf_adapters.encoders.load import load_encoder
from tf_adapters.layers.slot import Slot
from tf_adapters.models import composed_model
from tf_adapters.models import composition
from tf_adapters.models.trained_members import Member

Average, BatchSplit = tf_adapters.Average, tf_adapters.BatchSplit
Parallel, Stack = tf_adapters.Parallel, tf_adapters.Stack
ROOT = Path(__file__).parents[1] / "fixtures"
FOLDERS = {
    path.name: str(path)
    for path in (ROOT / "composition").iterdir()
    if path.is_dir()
}
EXPECTED = load_file(ROOT / "composition/expected.safetensors")
INPUTS = {
    name.removeprefix("input/"): value
    for name, value in EXPECTED.items()
    if name.startswith("input/")
}
CASES = {
    "stack": (Stack, ("one", "two"), {}),
    "stack_of_three": (Stack, ("two", "one", "short"), {}),
    "stack_on_language": (Stack, ("language", "one"), {}),
    "stack_of_languages": (Stack, ("language", "other_language"), {}),
    "stack_under_language": (Stack, ("one", "language"), {}),
    "stack_of_double": (Stack, ("houlsby_one", "houlsby_two"), {}),
    # The library divides by the number of members once more.
    "average": (
        Average,
        ("one", "two"),
        {"weights": (0.35, 0.15), "normalize": False},
    ),
    "average_of_double": (
        Average,
        ("houlsby_one", "houlsby_two"),
        {"weights": (0.1, 0.4), "normalize": False},
    ),
    "batch_split": (BatchSplit, ("one", "two"), {"batch_sizes": (1, 2)}),
    "parallel": (Parallel, ("one", "two"), {}),
}
HEAD = heads.Classification(labels=("no", "yes"))


def _encoder():
    folder = ROOT / "adapters" / "encoders" / "bert"
    return load_encoder(folder, with_tokenizer=False)[0]


def _trained(encoder, method, name, seed, head=None):
    model = tf_adapters.adapt(encoder, method, head, name=name)
    tiny.randomize(model.trained_variables().values(), 0.3, seed)
    return model


def _logits(model, inputs=None, encoder=None):
    inputs = tiny.batch(encoder) if inputs is None else inputs
    return keras.ops.convert_to_numpy(model(inputs))


@pytest.mark.parametrize("case", CASES)
def test_it_answers_as_the_library(case):
    kind, names, options = CASES[case]
    model = tf_adapters.compose(
        _encoder(), kind(*(FOLDERS[name] for name in names), **options)
    )
    output = model(INPUTS)
    parts = output if isinstance(output, list) else [output]
    output = np.concatenate([part["sequence_output"] for part in parts])
    wanted, mask = EXPECTED[case], INPUTS["padding_mask"]
    mask = np.concatenate([mask] * (len(wanted) // len(mask)))[..., None]
    np.testing.assert_allclose(output * mask, wanted * mask, atol=1e-5)


def test_a_batch_split_loses_no_rows_of_a_larger_batch():
    encoder = tiny.encoder(num_blocks=1)
    one, two = _members(encoder, methods.Pfeiffer(), methods.Pfeiffer())
    model = tf_adapters.compose(
        encoder, BatchSplit(one, two, batch_sizes=(1, 2))
    )
    outputs = model.predict(tiny.batch(encoder), verbose=0)
    assert [len(rows) for rows in outputs] == [1, 2]
    # Where a graph is for any number of rows, its own error is all there is.
    for size in (5, 6):
        with pytest.raises(Exception, match="takes 3|Incompatible shapes"):
            model.predict(tiny.batch(encoder, size=size), verbose=0)


def test_a_batch_split_may_have_more_rows_than_batches_of_keras():
    encoder = tiny.encoder(num_blocks=1)
    one, two = _members(encoder, methods.Pfeiffer(), methods.Pfeiffer())
    model = tf_adapters.compose(
        encoder, BatchSplit(one, two, batch_sizes=(1, 32))
    )
    outputs = model.predict(tiny.batch(encoder, size=33), verbose=0)
    assert [len(rows) for rows in outputs] == [1, 32]


def test_a_batch_split_of_choices_takes_a_graph_for_any_number_of_rows():
    encoder = tiny.encoder(num_blocks=1)
    one, two = (
        _trained(encoder, methods.Pfeiffer(), f"m{i}", i, heads.Choice())
        for i in (1, 2)
    )
    model = tf_adapters.compose(
        encoder, BatchSplit(one, two, batch_sizes=(1, 2))
    )
    features = {
        name: np.stack([value, value], axis=1)
        for name, value in tiny.batch(encoder).items()
    }
    shapes = {
        name: tf.TensorSpec((None, 2, None), tf.int32) for name in features
    }
    outputs = tf.function(model, input_signature=[shapes])(features)
    for found, wanted in zip(outputs, model(features), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_an_average_is_the_mean_of_what_its_members_put_out():
    encoder = tiny.encoder(num_blocks=1)
    members = [
        _trained(
            encoder, methods.Houlsby(4, train_layer_norms=False), f"m{i}", i
        )
        for i in (1, 2)
    ]
    model = tf_adapters.compose(encoder, Average(*members, weights=(3, 1)))
    slots = [m.slots[0]["after_attention"] for m in (*members, model)]
    x = np.random.default_rng(0).normal(size=(2, 5, tiny.WIDTH))
    one, two, mean = (slot(x, context=None)[0] for slot in slots)
    np.testing.assert_allclose(mean, 0.75 * one + 0.25 * two, atol=1e-6)


def test_an_average_of_loras_is_the_lora_of_their_products_mean():
    encoder = tiny.encoder(num_blocks=1)
    one, two = (
        _trained(encoder, methods.LoRA(rank=2), f"lora{i}", i, HEAD)
        for i in (1, 2)
    )
    model = tf_adapters.compose(encoder, Average(one, two))
    wide = tf_adapters.adapt(encoder, methods.LoRA(rank=4, alpha=4.0), HEAD)
    weights = {v.path: v for v in wide.trainable_weights}
    for name, axis in (("down_kernel", 1), ("up_kernel", 0)):
        for place in ("query", "value"):
            path = f"block_0_{place}/{name}"
            parts = [
                {v.path: v for v in m.trainable_weights}[path]
                for m in (one, two)
            ]
            # A rank of 4 and alpha of 4 have a factor of 1; theirs is 4.
            factor = 2.0 if name == "down_kernel" else 1.0
            weights[path].assign(factor * np.concatenate(parts, axis))
    for name in ("head/kernel", "head/bias"):
        weights[name].assign(
            next(v for v in two.trainable_weights if v.path == name)
        )
    np.testing.assert_allclose(
        _logits(model, encoder=encoder),
        _logits(wide, encoder=encoder),
        atol=1e-5,
    )


@pytest.fixture
def mad_x(tmp_path):
    """Two languages' folders, and a task's that was trained on the first."""
    # All three units of a block may be dead for so few texts: none trains then.
    keras.utils.set_random_seed(0)
    encoder = tiny.encoder()
    language = methods.Union((methods.Invertible(), methods.Pfeiffer(units=4)))
    for i, name in enumerate(("en", "de")):
        model = _trained(encoder, language, name, i)
        tf_adapters.save_adapter(model, tmp_path / name)
    model = tf_adapters.compose(
        encoder, Stack(tmp_path / "en", methods.Pfeiffer(units=3)), HEAD
    )
    model.compile(
        keras.optimizers.Adam(0.05),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    return encoder, model, tmp_path


def test_only_the_method_on_top_trains(mad_x):
    encoder, model, _ = mad_x
    before = tiny.values(model.weights)
    names = {id(v): i for i, v in enumerate(model.weights)}
    model.fit(tiny.batch(encoder), np.array([0, 1, 0]), epochs=2, verbose=0)
    changed = {
        i
        for i, (old, new) in enumerate(
            zip(before, tiny.values(model.weights), strict=True)
        )
        if not np.array_equal(old, new)
    }
    assert changed == {names[id(v)] for v in model.trained_variables().values()}
    # Four of the bottleneck in each block, and the head.
    assert len(changed) == 10


def test_another_language_is_swapped_in(mad_x):
    encoder, model, folder = mad_x
    tiny.randomize(model.trained_variables().values(), 0.3, 7)
    english = _logits(model, encoder=encoder)
    predicted = model.predict(tiny.batch(encoder), verbose=0)
    np.testing.assert_allclose(predicted, english, atol=1e-5)
    tf_adapters.swap_adapters(model, folder / "de")
    german = model.predict(tiny.batch(encoder), verbose=0)
    assert np.abs(german - english).max() > 0.01
    # The same as one that stood on it from the beginning.
    other = tf_adapters.compose(
        encoder, Stack(folder / "de", methods.Pfeiffer(units=3)), HEAD
    )
    for name, variable in model.trained_variables().items():
        other.trained_variables()[name].assign(variable)
    np.testing.assert_allclose(
        german, _logits(other, encoder=encoder), atol=1e-5
    )


def test_what_trained_is_saved_alone_and_knows_what_it_stood_on(mad_x):
    encoder, model, folder = mad_x
    tiny.randomize(model.trained_variables().values(), 0.3, 7)
    wanted = _logits(model, encoder=encoder)
    tf_adapters.save_adapter(model, folder / "task")
    names = load_file(folder / "task/adapter.safetensors")
    assert set(names) == set(model.trained_variables())
    loaded = tf_adapters.load_adapter(folder / "task", tiny.encoder())
    np.testing.assert_array_equal(_logits(loaded, encoder=encoder), wanted)
    on_german = tf_adapters.load_adapter(
        folder / "task", tiny.encoder(), below=folder / "de"
    )
    tf_adapters.swap_adapters(loaded, folder / "de")
    np.testing.assert_array_equal(
        _logits(on_german, encoder=encoder), _logits(loaded, encoder=encoder)
    )


def test_another_language_needs_no_folder_of_the_first(mad_x):
    _, model, folder = mad_x
    tf_adapters.save_adapter(model, folder / "task")
    shutil.rmtree(folder / "en")
    loaded = tf_adapters.load_adapter(
        folder / "task", tiny.encoder(), below=folder / "de"
    )
    assert [member.name for member in loaded.members] == ["de"]


def test_a_fusion_takes_nothing_below(mad_x):
    encoder, _, folder = mad_x
    for i, name in enumerate(("one", "two")):
        model = _trained(encoder, methods.Pfeiffer(units=4), name, i)
        tf_adapters.save_adapter(model, folder / name)
    fusion = _fused([folder / "one", folder / "two"], encoder)
    tf_adapters.save_adapter(fusion, folder / "fusion")
    with pytest.raises(UserError, match="cannot be stacked"):
        tf_adapters.load_adapter(
            folder / "fusion", tiny.encoder(), below=folder / "en"
        )


def test_a_head_that_does_not_fit_is_reported(tmp_path):
    encoder = tiny.encoder()
    model = _trained(encoder, methods.Pfeiffer(units=4), "one", 0, HEAD)
    tf_adapters.save_adapter(model, tmp_path / "one")
    path = tmp_path / "one/adapter_config.json"
    config = json.loads(path.read_text())
    config["head"]["labels"] = ["no", "yes", "maybe"]
    path.write_text(json.dumps(config))
    with pytest.raises(UserError, match="head/.* has shape"):
        tf_adapters.compose(encoder, Stack(tmp_path / "one"))


def test_the_folders_may_move_together(mad_x):
    encoder, model, folder = mad_x
    tf_adapters.save_adapter(model, folder / "task")
    wanted = _logits(model, encoder=encoder)
    moved = folder / "moved"
    moved.mkdir()
    for name in ("en", "task"):
        (folder / name).rename(moved / name)
    loaded = tf_adapters.load_adapter(moved / "task", tiny.encoder())
    np.testing.assert_array_equal(_logits(loaded, encoder=encoder), wanted)


def test_a_keras_file_round_trip(mad_x):
    encoder, model, folder = mad_x
    tiny.randomize(model.trained_variables().values(), 0.3, 7)
    model.save(folder / "model.keras")
    loaded = keras.saving.load_model(folder / "model.keras")
    np.testing.assert_allclose(
        _logits(loaded, encoder=encoder),
        _logits(model, encoder=encoder),
        atol=1e-6,
    )


def test_a_method_on_top_has_no_map_of_the_embeddings(mad_x):
    encoder, _, folder = mad_x
    top = methods.Union((methods.Invertible(), methods.Pfeiffer(units=3)))
    with pytest.raises(UserError, match="would not train"):
        tf_adapters.compose(encoder, Stack(folder / "en", top), HEAD)


@pytest.mark.parametrize("in_memory", [True, False])
def test_what_trained_on_others_needs_something_below(mad_x, in_memory):
    encoder, model, folder = mad_x
    tiny.randomize(model.trained_variables().values(), 0.3, 7)
    tf_adapters.save_adapter(model, folder / "task")
    task = model if in_memory else folder / "task"
    for tree in (Stack(task), Average(folder / "en", task), Parallel(task)):
        with pytest.raises(UserError, match="nothing is below"):
            tf_adapters.compose(encoder, tree)
    for tree in (
        Stack(folder / "en", task),
        Stack(folder / "en", Average(task, folder / "de", weights=(1, 0))),
    ):
        if in_memory and isinstance(tree.members[1], Average):
            continue
        found = tf_adapters.compose(encoder, tree, HEAD)
        output = found.encoder(tiny.batch(encoder))["sequence_output"]
        wanted = model.encoder(tiny.batch(encoder))["sequence_output"]
        np.testing.assert_allclose(output, wanted, atol=1e-5)
    for gather in (tf_adapters.load_bank, _fused):
        with pytest.raises(UserError, match="cannot hold"):
            gather([task], encoder)


def _fused(members, encoder):
    return tf_adapters.fuse(encoder, head=HEAD, adapters=members)


def test_blocks_that_a_member_is_left_out_of_stay_as_they_are(mad_x):
    encoder, _, folder = mad_x
    one = _trained(encoder, methods.Pfeiffer(units=4), "one", 3, HEAD)
    one.leave_out([0])
    tf_adapters.save_adapter(one, folder / "one")
    for member in (one, folder / "one"):
        model = tf_adapters.compose(encoder, Stack(member))
        np.testing.assert_allclose(
            _logits(model, encoder=encoder),
            _logits(one, encoder=encoder),
            atol=1e-6,
        )
    stack = Stack(folder / "one", methods.Pfeiffer(units=3))
    model = tf_adapters.compose(encoder, stack, HEAD)
    tf_adapters.save_adapter(model, folder / "task")
    loaded = tf_adapters.load_adapter(folder / "task", tiny.encoder())
    np.testing.assert_array_equal(
        _logits(loaded, encoder=encoder), _logits(model, encoder=encoder)
    )
    union = _trained(encoder, methods.Union((methods.Pfeiffer(),)), "two", 4)
    union.leave_out([1])
    with pytest.raises(UserError, match="left out of blocks"):
        tf_adapters.compose(encoder, Stack(union))


@pytest.mark.parametrize(
    "method",
    [
        methods.AdapterBias(train_norms="none"),
        methods.AdapterBias(
            l0_lambda=0.1,
            train_norms="none",
            share_vector=True,
            share_alpha=True,
        ),
        methods.ProjectedAttention(units=4, num_heads=2),
    ],
)
@pytest.mark.parametrize("blocks", [(0,), (0, 1)])
def test_what_blocks_share_is_left_where_others_are_left_out(method, blocks):
    encoder = tiny.encoder()
    one = _trained(encoder, method, "one", 3, HEAD)
    one.leave_out(blocks)
    np.testing.assert_allclose(
        _logits(tf_adapters.compose(encoder, one), encoder=encoder),
        _logits(one, encoder=encoder),
        atol=1e-5,
    )


def test_a_damaged_member_swaps_nothing(mad_x):
    encoder, _, folder = mad_x
    languages = [folder / "en", folder / "de"]
    model = tf_adapters.compose(
        encoder, Stack(*languages, methods.Pfeiffer(units=3)), HEAD
    )
    before = _logits(model, encoder=encoder)
    stored.change_weights(folder / "en", lambda t: t.pop(next(iter(t))))
    with pytest.raises(UserError, match="Missing"):
        tf_adapters.swap_adapters(model, Stack(*languages[::-1]))
    np.testing.assert_array_equal(_logits(model, encoder=encoder), before)


@pytest.mark.parametrize("form", ["adapterhub", "peft"])
def test_another_librarys_format_has_no_room_for_what_is_below(form, mad_x):
    _, model, folder = mad_x
    with pytest.raises(UserError, match='format="tf_adapters"'):
        tf_adapters.save_adapter(model, folder / "out", format=form)
    assert not (folder / "out").exists()


def _members(encoder, *kinds):
    return [
        tf_adapters.adapt(encoder, method, HEAD, name=f"m{i}")
        for i, method in enumerate(kinds)
    ]


# Behind the norm of the feed-forward network.
_ADAPTER_PLUS = methods.BottleneckForms(
    units=4, pretrained_norm="before", residual="read"
)


@pytest.mark.parametrize(
    ("kinds", "combine", "message"),
    [
        ((methods.LoRA(), methods.LoRA()), Stack, "use an Average"),
        ((methods.PrefixTuning(),), Stack, "changes the length"),
        ((methods.PromptTuning(),), Stack, "changes the length"),
        ((methods.Houlsby(),), Stack, "train_layer_norms=false"),
        ((_ADAPTER_PLUS, methods.Pfeiffer()), Stack, "make it the last"),
        ((_ADAPTER_PLUS, _ADAPTER_PLUS), Stack, "make it the last"),
        (
            (methods.Invertible(), methods.Invertible()),
            Average,
            "change the embeddings, with an Invertible",
        ),
        (
            (methods.Pfeiffer(), methods.Pfeiffer()),
            lambda *m: BatchSplit(*m, batch_sizes=(1, 1)),
            "takes 2",
        ),
        (
            (methods.Pfeiffer(), methods.Pfeiffer()),
            lambda *m: Stack(Parallel(*m)),
            "several outputs.*Repeat the shared members",
        ),
        (
            (methods.Pfeiffer(), methods.Pfeiffer(), methods.Pfeiffer()),
            lambda a, b, c: Parallel(Parallel(a, b), c),
            r"several outputs.*List all members in one: Parallel\(a, b, c",
        ),
    ],
)
def test_what_has_no_place_is_refused(kinds, combine, message):
    encoder = tiny.encoder(num_blocks=1)
    members = _members(encoder, *kinds)
    with pytest.raises(UserError, match=message):
        tf_adapters.compose(encoder, combine(*members))(tiny.batch(encoder))


class _Shift(Slot):
    def build(self, shape):
        self.shift = self.add_weight((shape[-1],), "zeros", name="shift")

    def call(self, x, context=None, training=None):
        return x + self.shift, {}


@dataclasses.dataclass(frozen=True)
class _Shifted(methods.Method):
    """A plug-in's method, which changes the embeddings."""

    def make_embedding_slots(self, shape):
        return {"embeddings": _Shift(name="embedding_shift")}


def test_two_changes_of_the_embeddings_have_no_place_in_a_stack():
    encoder = tiny.encoder(num_blocks=1)
    members = _members(encoder, methods.Pfeiffer(), _Shifted())
    with pytest.raises(UserError, match="but only one can"):
        tf_adapters.compose(encoder, Stack(*members))
    with pytest.raises(UserError, match="but only one can"):
        tf_adapters.compose(encoder, Stack(members[1], _Shifted()))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda one: Stack(), "needs members"),
        (lambda one: Stack(methods.Pfeiffer()), "on top of a Stack"),
        (
            lambda one: Stack(one, methods.Fusion()),
            "cannot be stacked on other",
        ),
        (lambda one: Average(one, methods.Pfeiffer()), "on top of a Stack"),
        (lambda one: Stack(methods.Pfeiffer(), one), "Expected as a compos"),
        (lambda one: Average(one, weights=(1, 2)), "as many weights"),
        (lambda one: Average(one, weights=(0,)), "sum to 0"),
        (
            # Their sum is 2e-17, for rounding.
            lambda one: Average(one, one, one, weights=(0.1, 0.2, -0.3)),
            "sum to 0",
        ),
        (lambda one: BatchSplit(one, batch_sizes=()), "number of rows"),
        (lambda one: BatchSplit(one, batch_sizes=(1.0,)), "a list of integers"),
        (lambda one: Average(one, weights=("1",)), "a list of finite num"),
        (lambda one: 3, "Expected as a compos"),
        (lambda one: Stack("nowhere"), "not an adapter folder"),
    ],
)
def test_mistakes_are_reported(make, message):
    encoder = tiny.encoder(num_blocks=1)
    (one,) = _members(encoder, methods.Pfeiffer())
    with pytest.raises(UserError, match=message):
        tf_adapters.compose(encoder, make(one))


def test_only_the_same_method_is_swapped_in(mad_x):
    encoder, model, _ = mad_x
    other = _trained(encoder, methods.Pfeiffer(units=9), "other", 3)
    with pytest.raises(UserError, match="same methods and settings"):
        tf_adapters.swap_adapters(model, other)
    alone = tf_adapters.adapt(encoder, methods.Pfeiffer(), HEAD)
    with pytest.raises(UserError, match="no adapters below"):
        tf_adapters.swap_adapters(alone, other)


def test_nothing_is_swapped_in_a_merged_model():
    encoder = tiny.encoder(num_blocks=1)
    one, two = (
        _trained(encoder, methods.Pfeiffer(), f"m{i}", i) for i in (1, 2)
    )
    top = methods.LoRA()
    model = tf_adapters.compose(encoder, Stack(one, top), HEAD)
    model.fold()
    with pytest.raises(UserError, match="unfold"):
        tf_adapters.swap_adapters(model, two)
    model.unfold()
    tf_adapters.swap_adapters(model, two)


@pytest.mark.parametrize(
    "method",
    [
        methods.Pfeiffer(),
        methods.AdapterBias(l0_lambda=0.1, train_norms="none"),
    ],
)
def test_a_model_alone_is_a_composition_of_one(method):
    encoder = tiny.encoder(num_blocks=1)
    one = _trained(encoder, method, "one", 1, HEAD)
    np.testing.assert_allclose(
        _logits(tf_adapters.compose(encoder, one), encoder=encoder),
        _logits(one, encoder=encoder),
        atol=1e-6,
    )


def test_a_recorded_member_that_fits_none_is_not_called_damaged():
    member = Member(
        *("one", None, methods.BitFit(), None, {}, None), left_out=(0,)
    )
    config = {
        "below": composition.tree_to_config(composed_model.methods_of(member))
    }
    with pytest.raises(AdapterError, match="one` was left out of blocks"):
        composed_model.restore(config, [member], None, tiny.encoder(), "task")


@pytest.mark.parametrize("below", [[3], [], [{}, {}], 7])
def test_a_damaged_tree_is_reported(mad_x, below):
    _, model, folder = mad_x
    tf_adapters.save_adapter(model, folder / "task")
    path = folder / "task/adapter_config.json"
    config = json.loads(path.read_text())
    config["below"]["members"] = below
    path.write_text(json.dumps(config))
    with pytest.raises(UserError, match="damaged"):
        tf_adapters.load_adapter(folder / "task", tiny.encoder())
