"""Compares mixed batches with single adapters."""

import numpy as np
import pytest

from tests import stored
from tests import tiny
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.layers.bank import BankHead
from tf_adapters.models import saving
from tf_adapters.models.adapter_model import adapt
from tf_adapters.models.bank_model import load_bank

pytestmark = pytest.mark.integration

HEADS = (
    heads.Classification(("no", "yes")),
    heads.Classification(("a", "b", "c")),
    heads.Regression(),
)
_DOWN = "block_0_after_ffn/delta/down_kernel"
_NORM = "embeddings_layer_norm/gamma"
CASES = {
    "pfeiffer": [methods.Pfeiffer(units=units) for units in (4, 3, 5)],
    "houlsby": [methods.Houlsby(units=units) for units in (4, 3, 5)],
    "some_norms": [
        methods.Houlsby(units=4, train_layer_norms=trains)
        for trains in (True, False, True)
    ],
    "left_out": [methods.Pfeiffer(units=4, leave_out=(0,))] * 3,
}


def _members(tmp_path, case, family="bert"):
    """Writes three adapters; returns their folders."""
    folders = []
    for number, (method, head) in enumerate(
        zip(CASES[case], HEADS, strict=True)
    ):
        model = adapt(tiny.encoder(family), method, head)
        for name, variable in model.trained_variables().items():
            tiny.randomize([variable], seed=len(name) + 100 * number)
        folders.append(tmp_path / f"run{number}" / "adapter")
        saving.save_adapter(model, folders[-1])
    return folders


def _compare(folders, family="bert"):
    bank = load_bank(folders, tiny.encoder(family))
    features = tiny.batch(bank.encoder_info, size=7)
    ids = np.array([2, 0, 1, 1, 0, 2, 0])
    mixed = np.asarray(bank({**features, "adapter_ids": ids}))
    assert mixed.shape == (7, 3)
    for number, folder in enumerate(folders):
        alone = saving.load_adapter(folder, tiny.encoder(family))
        expected = np.asarray(alone(features))[ids == number]
        outputs = expected.shape[1]
        np.testing.assert_allclose(
            mixed[ids == number, :outputs], expected, atol=1e-5
        )
        assert (mixed[ids == number, outputs:] == BankHead.ABSENT).all()
    return mixed


@pytest.mark.parametrize("case", CASES)
def test_a_mixed_batch_is_each_adapter_alone(tmp_path, case):
    _compare(_members(tmp_path, case))


@pytest.mark.parametrize("family", ["roberta", "electra", "mpnet"])
def test_other_encoders(tmp_path, family):
    _compare(_members(tmp_path, "houlsby", family), family)


def test_the_adapters_differ(tmp_path):
    """Otherwise a bank that always uses the first one would pass."""
    folders = _members(tmp_path, "houlsby")
    bank = load_bank(folders, tiny.encoder())
    features = tiny.batch(bank.encoder_info)
    answers = [
        np.asarray(bank({**features, "adapter_ids": np.full(3, number)}))[:, 0]
        for number in range(3)
    ]
    assert np.abs(np.diff(answers, axis=0)).max(1).min() > 0.1


def test_nothing_trains(tmp_path):
    bank = load_bank(_members(tmp_path, "houlsby"), tiny.encoder())
    assert not bank.encoder.slots[0]["after_ffn"].trainable_weights
    assert not bank.head_layer.trainable_weights


def _other(tmp_path, method, head=HEADS[0]):
    folder = tmp_path / "other" / "adapter"
    saving.save_adapter(adapt(tiny.encoder(), method, head), folder)
    return folder


@pytest.mark.parametrize(
    ("method", "head", "message"),
    [
        (methods.Full(), HEADS[0], "only bottleneck adapters"),
        (methods.BitFit(), HEADS[0], "only bottleneck adapters"),
        (methods.Houlsby(units=4), HEADS[0], "agree in their placement"),
        (methods.Pfeiffer(units=4, activation="tanh"), HEADS[0], "activation"),
        (methods.Pfeiffer(units=4), None, "has no head"),
        (
            methods.Pfeiffer(units=4),
            heads.Classification(("a", "b"), reads="pooled_output"),
            "what their heads read",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_does_not_fit_is_refused(tmp_path, method, head, message):
    folders = _members(tmp_path, "pfeiffer")
    with pytest.raises(saving.AdapterError, match=message):
        load_bank([*folders, _other(tmp_path, method, head)], tiny.encoder())


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
    folders = _members(tmp_path, "houlsby")
    stored.change_weights(folders[0], change)
    with pytest.raises(saving.AdapterError, match=message):
        load_bank(folders, tiny.encoder())


def test_blocks_are_left_out_in_any_order(tmp_path):
    for name, blocks in (("a", (0, 1)), ("b", (1, 0))):
        method = methods.Pfeiffer(units=4, leave_out=blocks)
        model = adapt(tiny.encoder(), method, HEADS[0])
        saving.save_adapter(model, tmp_path / name / "adapter")
    assert load_bank([tmp_path / "a", tmp_path / "b"], tiny.encoder())


def test_an_id_that_is_none_has_no_answer(tmp_path):
    bank = load_bank(_members(tmp_path, "houlsby"), tiny.encoder())
    features = tiny.batch(bank.encoder_info, size=4)
    answers = bank({**features, "adapter_ids": np.array([-1, 0, 2, 3])})
    unknown = np.isnan(np.asarray(answers)).all(axis=1)
    assert unknown.tolist() == [True, False, False, True]


def test_a_damaged_member_is_refused(tmp_path):
    folders = _members(tmp_path, "pfeiffer")
    (folders[1] / "adapter.safetensors").write_bytes(b"12345678")
    with pytest.raises(saving.AdapterError, match="damaged"):
        load_bank(folders, tiny.encoder())
