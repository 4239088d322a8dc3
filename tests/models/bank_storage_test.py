"""Adds, replaces and removes adapters of a bank that is in use."""

import gc
import threading

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import tiny
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.models.adapter_model import adapt
from tf_adapters.models.bank_core import BankCore
from tf_adapters.models.bank_entries import BankEntries
from tf_adapters.models.bank_model import load_bank
from tf_adapters.models.bank_rows import BankRows
from tf_adapters.models.saving import AdapterError

pytestmark = pytest.mark.integration

HEAD = heads.Classification(("no", "yes"))
PFEIFFER = methods.Pfeiffer(units=9)
WIDTH, BLOCKS, FFN_WIDTH = tiny.WIDTH, tiny.BLOCKS, tiny.FFN_WIDTH


@pytest.fixture(scope="module")
def encoder():
    return tiny.encoder()


@pytest.fixture(scope="module")
def features(encoder):
    return tiny.batch(encoder, size=2)


def _model(encoder, name, method=PFEIFFER, head=HEAD):
    model = adapt(encoder, method, head, name=name)
    for variable in model.trained_variables().values():
        tiny.randomize([variable], seed=sum(map(ord, name + variable.path)))
    return model


def _ask(bank, features, names):
    with bank.using(names) as used:
        ids = used.adapter_ids
        return np.asarray(bank({**features, "adapter_ids": ids}))


def _is_alone(bank, features, *models):
    names = [model.name for model in models]
    with bank.using(names) as used:
        ids = used.adapter_ids
        found = used.split(bank({**features, "adapter_ids": ids}))
    for row, model in enumerate(models):
        expected = np.asarray(model(features))[row]
        np.testing.assert_allclose(found[row], expected, atol=1e-5)


def test_to_add_replace_and_remove_traces_nothing(encoder, features):
    one, two = _model(encoder, "one"), _model(encoder, "two")
    lora = _model(encoder, "lora", methods.LoRA())
    bank = load_bank([one, lora], encoder, capacity=4)
    bank.reserve(4)
    traces = []

    @tf.function
    def ask(inputs):
        traces.append(1)
        return bank(inputs)

    def answers(*names):
        with bank.using(names) as used:
            ids = tf.constant(used.adapter_ids)
            found = ask({**features, "adapter_ids": ids})
        return found[:, :2]

    def expected(*models):
        found = [model(features)[row] for row, model in enumerate(models)]
        return np.stack(found)

    np.testing.assert_allclose(
        answers("lora", "one"), expected(lora, one), atol=1e-5
    )
    bank.add(two)
    bank.add(_model(encoder, "four", methods.LoRA(rank=3)))
    np.testing.assert_allclose(
        answers("two", "lora"), expected(two, lora), atol=1e-5
    )
    # Not only another adapter of the kind, but of another kind.
    bank.add(lora, name="one")
    np.testing.assert_allclose(
        answers("one", "two"), expected(lora, two), atol=1e-5
    )
    bank.remove("two")
    bank.add(one, name="last")
    np.testing.assert_allclose(
        answers("last", "last"), expected(one, one), atol=1e-5
    )
    assert len(traces) == 1
    assert bank.generation == 1  # By `reserve`.


def test_more_rows_and_new_kinds_are_the_only_new_graphs(encoder, features):
    models = [_model(encoder, f"model{i}") for i in range(4)]
    bank = load_bank(models[:1], encoder, capacity=9)
    generations, table = [], bank.core.table
    for model in models[1:]:
        bank.add(model)
        generations.append(bank.generation)
    # Rows of adapters at each place: 1, 3, 3, 7.
    assert generations == [1, 1, 2]
    tags = _model(encoder, "tags", methods.IA3(), heads.Tagging(("a", "b")))
    bank.add(tags)
    assert bank.generation == 3
    # The variables of before are gone.
    assert not any(weight is table for weight in bank.weights)
    assert any(weight is bank.core.table for weight in bank.weights)
    with bank.using(["tags", "model3"]) as used:
        inputs = {**features, "adapter_ids": used.adapter_ids}
        found = used.split(bank.predict(inputs, verbose=0))
    np.testing.assert_allclose(found[0], tags(features)[0], atol=1e-5)
    np.testing.assert_allclose(found[1], models[3](features)[1], atol=1e-5)


def test_spare_rows_are_for_adapters_that_come(encoder):
    models = [_model(encoder, f"m{i}", methods.IA3()) for i in range(5)]
    bank = load_bank(models[:2], encoder, capacity=9)
    bank.reserve_spare(2)
    generations = []
    for model in models[2:]:
        bank.add(model)
        generations.append(bank.generation)
    assert generations == [1, 1, 2]


@pytest.mark.parametrize(
    ("least", "most", "expected"), [(4, 100, 51), (4, 7, 48), (4, 2, 45)]
)
def test_there_is_a_spare_row_for_every_four(least, most, expected):
    rows = BankRows({"place": 60})
    for _ in range(40):  # Row 0 is used, too.
        rows.take(["place"])
    assert rows.with_spare(least, most) == {"place": expected}


def test_an_adapter_takes_its_bytes_padded(encoder):
    bank = load_bank([_model(encoder, "one")], encoder, capacity=3)
    # Width 9 is padded to 16, and the head's 2 outputs to 8.
    head = WIDTH * 8 + 8
    bottleneck = 2 * WIDTH * 16 + 16 + WIDTH
    assert bank.num_bytes("one") == 4 * (BLOCKS * bottleneck + head)
    before = bank.num_bytes()
    bank.add(_model(encoder, "scale", methods.IA3()))
    vectors = 2 * WIDTH + FFN_WIDTH
    assert bank.num_bytes("scale") == 4 * (BLOCKS * vectors + head)
    # A neutral row of each new kind, and the heads' rows doubled.
    added = bank.num_bytes() - before
    assert added == 4 * (2 * BLOCKS * vectors + 2 * head)
    assert sum(w.nbytes for w in _weights(bank)) == bank.num_bytes()


def _weights(bank):
    layers = bank.core.layers_by_place.values()
    return [w.numpy() for layer in layers for w in layer.weights]


def test_the_least_recently_used_is_overwritten(encoder, features):
    models = {name: _model(encoder, name) for name in ("a", "b", "c", "d")}
    bank = load_bank([models["a"], models["b"]], encoder, capacity=2)
    _ask(bank, features, ["a", "a"])
    bank.add(models["c"])
    assert bank.names == ["a", "c"]
    _is_alone(bank, features, models["c"], models["a"])
    bank.pin("c")
    bank.add(models["d"], pinned=True)
    assert bank.names == ["c", "d"]
    with pytest.raises(AdapterError, match="all of its 2 adapters are pinned"):
        bank.add(models["a"])
    bank.add(models["c"])  # Replaces itself; not pinned this time.
    bank.add(models["a"])
    assert bank.names == ["d", "a"]
    bank.unpin("d")
    bank.add(models["b"])
    _is_alone(bank, features, models["a"], models["b"])


def test_what_a_request_uses_is_not_overwritten(encoder, features):
    one, two = _model(encoder, "one"), _model(encoder, "two")
    bank = load_bank([one], encoder, capacity=1)
    with bank.using(["one", "one"]) as used:
        ids = used.adapter_ids
        bank.add(two, name="one")
        before = np.asarray(bank({**features, "adapter_ids": ids}))
        np.testing.assert_allclose(before[:, :2], one(features), atol=1e-5)
        after = _ask(bank, features, ["one", "one"])
        np.testing.assert_allclose(after[:, :2], two(features), atol=1e-5)
        bank.remove("one")
        bank.add(two, name="other")
        np.testing.assert_allclose(
            bank({**features, "adapter_ids": ids}), before, atol=1e-6
        )
    with pytest.raises(AdapterError, match="no adapter `one`"):
        _ask(bank, features, ["one", "one"])
    bank.add(one)
    _is_alone(bank, features, one, one)


def test_to_wait_for_requests_ends():
    entries = BankEntries(capacity=1)
    indices = {entries.claim(name, timeout=1).index for name in "ab"}
    assert indices == {0, 1}
    with pytest.raises(AdapterError, match="used the adapters .* 0.01 seconds"):
        entries.claim("c", timeout=0.01)


def test_an_adapter_that_cannot_be_added_replaces_none(
    encoder, features, monkeypatch
):
    one, two = _model(encoder, "one"), _model(encoder, "two")
    lora = _model(encoder, "lora", methods.LoRA(rank=1))
    bank = load_bank([one, two], encoder, capacity=2)
    before = _ask(bank, features, ["one", "two"])

    def too_little_memory(num_rows):
        if num_rows:
            raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(bank, "_grow", too_little_memory)
        for _ in range(2):
            with pytest.raises(MemoryError):
                bank.add(lora)
    monkeypatch.setattr("tf_adapters.models.bank_storage._TIMEOUT", 0.01)
    # Both of one and its earlier version are in use, so no index is free.
    with bank.using(["one"]):
        bank.add(one)
        refused = pytest.raises(AdapterError, match="seconds")
        with bank.using(["one", "two"]), refused:
            bank.add(lora)
    assert sorted(bank.names) == ["one", "two"]
    # No row is free that an adapter uses, or free twice.
    used = [row for e in bank._entries.in_order() for row in e.rows.items()]
    free = [(p, row) for p, rows in bank._rows._free.items() for row in rows]
    assert len({*used, *free}) == len(used) + len(free)
    np.testing.assert_allclose(
        _ask(bank, features, ["one", "two"]), before, atol=1e-6
    )
    bank.add(lora)
    assert "lora" in bank.names and len(bank.names) == 2


def test_a_call_during_the_addition_of_tags_finds_its_outputs(
    encoder, features, monkeypatch
):
    models = [_model(encoder, "other"), _model(encoder, "one")]
    tagger = _model(encoder, "tags", head=heads.Tagging(("X", "Y", "Z")))
    bank = load_bank(models, encoder)
    called, write = [], BankCore.write

    def write_meanwhile(core, *arguments):
        if not called:
            called.append(True)
            _is_alone(bank, features, models[1], models[1])
        write(core, *arguments)

    monkeypatch.setattr(BankCore, "write", write_meanwhile)
    _is_alone(bank, features, models[1], models[1])
    bank.add(tagger)
    assert called


def test_unknown_names_and_capacities_are_refused(encoder, features):
    bank = load_bank([_model(encoder, "one")], encoder)
    for act in (bank.remove, bank.pin, bank.num_bytes):
        with pytest.raises(AdapterError, match="no adapter `two`. It has: one"):
            act("two")
    with pytest.raises(AdapterError, match="at least 1.*capacity=0"):
        load_bank([_model(encoder, "one")], encoder, capacity=0)


def test_a_wider_head_than_expected_widens_the_outputs(encoder, features):
    bank = load_bank([_model(encoder, "one")], encoder)
    assert _ask(bank, features, ["one", "one"]).shape == (2, 2)
    wide = _model(encoder, "wide", head=heads.Classification(tuple("abc")))
    bank.add(wide)
    _is_alone(bank, features, wide, wide)


class _Adds(keras.callbacks.Callback):
    """Adds adapters between the batches of `predict`."""

    def __init__(self, bank, models):
        super().__init__()
        self.bank, self.models = bank, models

    def on_predict_batch_end(self, batch, logs=None):
        self.bank.add(self.models[batch])
        gc.collect()


def test_adapters_may_be_added_while_the_bank_predicts(encoder):
    features = tiny.batch(encoder, size=3)
    models = [_model(encoder, f"m{i}") for i in range(4)]
    bank = load_bank(models[:1], encoder, capacity=9)
    expected = np.asarray(models[0](features))
    adds = _Adds(bank, models[1:])
    with bank.using(["m0"] * 3) as used:
        inputs = {**features, "adapter_ids": used.adapter_ids}
        found = bank.predict(inputs, 1, verbose=0, callbacks=[adds])
    assert bank.generation == 2
    np.testing.assert_allclose(found[:, :2], expected, atol=1e-5)


def test_threads_ask_while_adapters_come_and_go(encoder, features):
    models = {f"m{i}": _model(encoder, f"m{i}") for i in range(3)}
    expected = {n: np.asarray(m(features)) for n, m in models.items()}
    bank = load_bank(list(models.values()), encoder, capacity=3)
    wrong, stop = [], threading.Event()

    def ask(seed):
        generator = np.random.default_rng(seed)
        while not stop.is_set():
            names = generator.choice(list(models), 2)
            found = _ask(bank, features, names)[:, :2]
            right = np.stack([expected[n][i] for i, n in enumerate(names)])
            wrong.append(np.abs(found - right).max())

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        for model in models.values():
            bank.add(model)
    bank.reserve(8)
    bank.add(models["m0"])
    stop.set()
    for thread in threads:
        thread.join()
    assert len(wrong) > 1 and max(wrong) < 1e-5
