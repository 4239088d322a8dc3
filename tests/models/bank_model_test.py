"""Compares mixed batches of a bank with single adapters."""

import numpy as np
import pytest

from tests import stored
from tests import tiny
from tests.methods import cases
import tf_adapters
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.layers.banks.heads import ABSENT
from tf_adapters.models import saving
from tf_adapters.models.adapter_model import adapt
from tf_adapters.models.bank_model import load_bank

pytestmark = pytest.mark.integration

TWO = heads.Classification(("no", "yes"))
HEADS = (
    TWO,
    heads.Regression(),
    heads.MultiLabel(("a", "b", "c"), hidden_layer="tanh"),
    heads.Tagging(tuple("abcdefghi")),
    heads.Classification(
        ("a", "b", "c"), reads="pooled_output", hidden_layer="gelu"
    ),
    heads.Span(),
)
_PARALLEL = {"parallel": True, "pretrained_norm": "after"}
METHODS = (
    methods.Houlsby(units=9, activation="tanh"),
    methods.LoRA(rank=3, projections=("query", "key", "ffn_up")),
    methods.BitFit(),
    methods.IA3(),
    methods.BitFit(),
    methods.PrefixTuning(prefix_length=9, hidden_units=4),
    methods.IA3(form="peft"),
    methods.AdapterBias(share_vector=True, leave_out=(0,)),
    methods.BottleneckForms(**_PARALLEL, units=3, scaling=4.0),
    methods.PrefixTuning(prefix_length=5, hidden_units=0),
    methods.AdapterBias(use_alpha=False, train_norms="none"),
    methods.Union(
        (
            methods.LoRA(rank=2, projections=("ffn_down",)),
            methods.BottleneckForms(
                position="bottom",
                pretrained_norm="after",
                learned_scaling="channel",
                units=4,
            ),
            methods.LayerNorm(),
        )
    ),
    methods.Pfeiffer(units=4),
    methods.Compacter(units=8),
    methods.HeadOnly(),
)
ONLY_TEXTS = [methods.Pfeiffer(units=4), methods.LoRA(rank=3)]
_DOWN = "block_0_after_ffn/delta/down_kernel"
_NORM = "embeddings_layer_norm/gamma"


def _model(method, head, family="bert", seed=0):
    """Returns a model whose weights all matter."""
    model = adapt(tiny.encoder(family), method, head)
    for name, variable in model.trained_variables().items():
        tiny.randomize([variable], seed=len(name) + 100 * seed)
    return model


def _models(chosen, family="bert"):
    has_pooler = tiny.encoder(family).has_pooler
    usable = [h for h in HEADS if has_pooler or h.reads != "pooled_output"]
    for seed, method in enumerate(chosen):
        yield _model(method, usable[seed % len(usable)], family, seed)


def _members(tmp_path, chosen):
    """Writes adapters; returns their folders."""
    folders = []
    for seed, model in enumerate(_models(chosen)):
        folders.append(tmp_path / f"run{seed}")
        saving.save_adapter(model, folders[-1] / "adapter")
    return folders


def _compare(tmp_path, chosen, family="bert"):
    """Compares each row of a shuffled batch with its adapter alone."""
    ids = np.random.default_rng(0).permutation(np.arange(2 * len(chosen)) // 2)
    features = tiny.batch(tiny.encoder(family), size=len(ids))
    folders, expected = [], []
    for number, model in enumerate(_models(chosen, family)):
        folders.append(tmp_path / f"run{number}")
        saving.save_adapter(model, folders[-1] / "adapter")
        rows = {name: value[ids == number] for name, value in features.items()}
        expected.append(np.asarray(model(rows)))
    bank = load_bank(folders, tiny.encoder(family))
    with bank.using([bank.members[i].name for i in ids]) as used:
        np.testing.assert_array_equal(used.adapter_ids, ids)
        outputs = bank({**features, "adapter_ids": ids})
        found = used.split(outputs)
    for number, answers in enumerate(expected):
        rows = np.flatnonzero(ids == number)
        np.testing.assert_allclose([found[i] for i in rows], answers, atol=1e-5)
    return outputs


def test_a_batch_of_all_methods_is_each_adapter_alone(tmp_path):
    outputs = _compare(tmp_path, METHODS)
    assert {name: value.shape[-1] for name, value in outputs.items()} == {
        "texts": 3,
        "tokens": 9,
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "chosen"),
    [
        ("electra", METHODS[:3]),  # A bias after the embeddings.
        ("albert", METHODS[1:3]),  # Blocks share weights.
        ("deberta", METHODS[:2]),  # Keys of positions.
        ("modernbert", METHODS[0:1] + METHODS[5:6]),  # Norms come first.
    ],
    ids=["electra", "albert", "deberta", "modernbert"],
)
def test_other_encoders(tmp_path, family, chosen):
    _compare(tmp_path, chosen, family)


def test_heads_of_texts_give_one_tensor(tmp_path):
    outputs = _compare(tmp_path, ONLY_TEXTS)
    assert outputs.shape == (4, 2)
    # By the adapter whose head has one output.
    is_number = np.asarray(outputs)[:, 1] == ABSENT
    assert is_number.sum() == 2


def test_it_computes_in_half_precision(tmp_path):
    models = list(_models([METHODS[i] for i in (0, 1, 3)]))
    features = tiny.batch(models[0].encoder_info)
    features["adapter_ids"] = np.arange(3)
    folders = []
    for number, model in enumerate(models):
        folders.append(tmp_path / f"{number}")
        saving.save_adapter(model, folders[-1])
    half = load_bank(folders, tiny.encoder(dtype="mixed_bfloat16"))
    outputs = half(features)
    assert outputs.dtype == "float32"
    for row, model in enumerate(models):
        expected = np.asarray(model(features))[row]
        np.testing.assert_allclose(
            outputs[row, : len(expected)], expected, atol=0.3
        )


def test_nothing_trains(tmp_path):
    bank = load_bank(_members(tmp_path, ONLY_TEXTS), tiny.encoder())
    assert bank.weights and not bank.trainable_weights


def test_an_id_that_is_none_has_no_answer(tmp_path):
    bank = load_bank(_members(tmp_path, ONLY_TEXTS), tiny.encoder())
    features = tiny.batch(bank.encoder_info, size=5)
    ids = np.array([-1, 0, 1, 2, 3])
    answers = bank({**features, "adapter_ids": ids})
    unknown = np.isnan(np.asarray(answers)).all(axis=1)
    assert unknown.tolist() == [True, False, False, True, True]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.pop("head/kernel"), "Missing: head/kernel"),
        (lambda t: t.pop(_NORM), f"Missing: {_NORM}"),
        (lambda t: t.update(other=np.zeros(3, "float32")), "Unexpected: other"),
        (
            lambda t: t.update({_DOWN: t[_DOWN][:, :3].copy()}),
            r"has shape \(16, 3\), but the model needs \(16, 4\)",
        ),
        (
            lambda t: t.update({_DOWN: np.pad(t[_DOWN], [(0, 0), (0, 3)])}),
            r"has shape \(16, 7\)",
        ),
        (lambda t: t[_DOWN].fill(np.nan), "not finite"),
    ],
    ids=["head", "norm", "more", "narrow", "wide", "nan"],
)
def test_members_are_read_as_strictly_as_alone(tmp_path, change, message):
    (folder,) = _members(tmp_path, [methods.Houlsby(units=4)])
    stored.change_weights(folder / "adapter", change)
    with pytest.raises(saving.AdapterError, match=message):
        load_bank([folder], tiny.encoder())


def test_a_damaged_member_is_refused(tmp_path):
    folders = _members(tmp_path, ONLY_TEXTS)
    (folders[1] / "adapter/adapter.safetensors").write_bytes(b"12345678")
    with pytest.raises(saving.AdapterError, match="damaged"):
        load_bank(folders, tiny.encoder())


GATED = methods.LoRA(use_gating=True)
PEFT = methods.PrefixTuning(prefix_length=2, form="peft")


@pytest.mark.parametrize(
    ("method", "head", "message"),
    [
        (methods.Full(), TWO, "such as `token_embedding/embeddings`"),
        (methods.TopLayers(), TWO, "all adapters of a bank share"),
        (methods.DiffPruning(), TWO, "`diff_pruning`.* all weights"),
        (methods.PromptTuning(), TWO, "class Prompt does not define"),
        (GATED, TWO, "no gates"),
        (PEFT, TWO, "shifts the positions"),
        (
            methods.BottleneckForms(pretrained_norm="before"),
            TWO,
            "`pretrained_norm` to be 'both' or 'after'. Received: 'before'",
        ),
        (methods.Pfeiffer(units=257), TWO, "at most 256. Received: 257"),
        (methods.Pfeiffer(), None, "has no head"),
        (methods.Pfeiffer(), heads.Choice(), "is a choice, and a bank cannot"),
        (
            methods.Pfeiffer(),
            heads.Classification(("a", "b"), windows=2),
            "pools the windows",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_does_not_fit_is_refused(method, head, message):
    model = adapt(tiny.encoder(), method, head)
    with pytest.raises(saving.AdapterError, match=message):
        load_bank([model], model.encoder_info)


# The cases of methods that a bank cannot hold.
REFUSED = {
    *("full", "full_mixout", "top_layers", "diff_pruning"),
    *("multitask", "multitask_heads", "projected_attention"),
    *("projected_attention_code", "prompt_tuning", "prompt_tuning_peft"),
    *("prefix_tuning_peft", "bottleneck_forms", "invertible"),
    *("language_adapter", "unipelt"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", cases.CASES)
def test_every_case_of_a_method_is_held_or_refused(tmp_path, name):
    method, _ = cases.CASES[name]
    blocks = cases.num_blocks(method)
    model = cases.build(tiny.encoder(num_blocks=blocks), method, TWO)
    for number, variable in enumerate(model.trained_variables().values()):
        tiny.randomize([variable], seed=number)
    saving.save_adapter(model, tmp_path / "run")
    encoder = tiny.encoder(num_blocks=blocks)
    if name in REFUSED:
        with pytest.raises(saving.AdapterError, match="a bank cannot hold it"):
            load_bank([tmp_path / "run"], encoder)
        return
    bank = load_bank([tmp_path / "run"], encoder)
    features = tiny.batch(encoder)
    found = bank({**features, "adapter_ids": np.zeros(3, "int32")})
    np.testing.assert_allclose(found, model(features), atol=1e-5)


def test_a_fusion_is_refused(tmp_path):
    encoder = tiny.encoder()
    members = [
        adapt(encoder, methods.Pfeiffer(), TWO, name=name) for name in "ab"
    ]
    fusion = tf_adapters.fuse(encoder, head=TWO, adapters=members)
    with pytest.raises(saving.AdapterError, match="combines adapters"):
        load_bank([fusion], encoder)


def test_an_adapter_of_another_encoder_is_refused(tmp_path):
    folders = _members(tmp_path, ONLY_TEXTS)
    other = tiny.encoder(seed=1)
    found = f"{tiny.encoder().fingerprint[:12]}.*{other.fingerprint[:12]}"
    with pytest.raises(saving.AdapterError, match=found):
        load_bank(folders, other)
    bank = load_bank([adapt(other, methods.HeadOnly(), TWO)], other)
    with pytest.raises(saving.AdapterError, match=found):
        bank.add(folders[0])
