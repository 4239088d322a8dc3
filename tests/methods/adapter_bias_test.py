"""Compares AdapterBias with the paper, its printed counts and its gates."""

import numpy as np
import pytest

from tests import stored
from tests import tiny
from tests.references import methods_numpy as reference
from tf_adapters import heads
from tf_adapters.common import adapter_folder
from tf_adapters.layers import Context
from tf_adapters.methods import AdapterBias
from tf_adapters.methods import MultiTask
from tf_adapters.methods import Pfeiffer
from tf_adapters.methods.method import EncoderShape
from tf_adapters.models import saving
from tf_adapters.models.adapter_model import adapt
from tf_adapters.models.composed_model import compose
from tf_adapters.models.composition import Stack
from tf_adapters.models.variable_groups import count_weights

WIDTH, FFN_WIDTH = 6, 10
RANDOM = np.random.default_rng(0)
X, RESIDUAL = RANDOM.normal(size=(2, 1, 4, WIDTH)).astype("float32")
INTERMEDIATE = RANDOM.normal(size=(1, 4, FFN_WIDTH)).astype("float32")


@pytest.mark.parametrize(
    ("alpha_input", "read"),
    [("intermediate", INTERMEDIATE), ("residual", RESIDUAL)],
)
def test_shift_is_the_outer_product(alpha_input, read):
    method = AdapterBias(alpha_input=alpha_input)
    (slots,) = method.make_slots(EncoderShape(1, WIDTH, FFN_WIDTH))
    slot = slots["after_ffn"]
    slot.build(X.shape)
    tiny.randomize(slot.variables, scale=1.0)
    context = Context(None, residual=RESIDUAL, intermediate=INTERMEDIATE)
    output, probes = slot(X, context=context)
    vector, kernel, bias = (
        np.asarray(v)
        for v in (slot.vector.vector, slot.alpha.kernel, slot.alpha.bias)
    )
    shift = reference.adapter_bias(read[0], vector, kernel[:, 0], bias)
    assert np.abs(shift).max() > 1
    np.testing.assert_allclose(output[0], X[0] + shift, rtol=1e-5, atol=1e-5)
    assert probes["alpha"].shape == (1, 4, 1)


@pytest.mark.parametrize(
    ("options", "percent"),
    [
        ({"train_norms": "block"}, 0.075),
        ({"train_norms": "block", "share_vector": True}, 0.068),
        ({"train_norms": "block", "share_alpha": True}, 0.045),
        (
            {"train_norms": "block", "share_vector": True, "share_alpha": True},
            0.037,
        ),
        ({"train_norms": "none", "use_alpha": False}, 0.008),
    ],
)
def test_counts_are_those_of_tables_3_and_4(options, percent):
    """BERT-base: 12 blocks of width 768 and 3072, 110 M weights."""
    method = AdapterBias(**options)
    slots = method.make_slots(EncoderShape(12, 768, 3072))
    layers = {}
    for block in slots:
        block["after_ffn"].build((None, None, 768))
        layers |= {id(v): v for v in block["after_ffn"].variables}
    norms = 12 * 4 * 768 if options["train_norms"] == "block" else 0
    weights = count_weights(layers.values()) + norms
    assert round(100 * weights / 110e6, 3) == percent


def test_code_count_on_bert_large_is_0_17_million():
    method = AdapterBias(train_norms="ffn_and_embedding")
    slots = method.make_slots(EncoderShape(24, 1024, 4096))
    weights = 25 * 2 * 1024
    for block in slots:
        block["after_ffn"].build((None, None, 1024))
        weights += count_weights(block["after_ffn"].variables)
    assert weights == 174_104


@pytest.mark.parametrize("share_alpha", [False, True])
def test_penalty_counts_a_gate_once_however_often_it_is_used(share_alpha):
    method = AdapterBias(l0_lambda=0.5, share_alpha=share_alpha)
    model = adapt(tiny.encoder(), method)
    num_layers = 1 if share_alpha else tiny.BLOCKS
    gates = num_layers * (tiny.FFN_WIDTH + 1)
    expected = 0.5 * gates * reference.expected_open(0.0, 2 / 3, -0.1, 1.1)
    np.testing.assert_allclose(model.penalty(), expected, rtol=1e-4)


def test_gates_on_top_of_another_adapter_count_alone():
    encoder = tiny.encoder()
    gated = AdapterBias(l0_lambda=1.0, train_norms="none")
    below = adapt(encoder, Pfeiffer(units=4))
    tiny.randomize(below.trained_variables().values())
    model = compose(encoder, Stack(below, gated))
    alone = adapt(encoder, gated)
    np.testing.assert_allclose(model.penalty(), alone.penalty())
    assert gated.report(model) == gated.report(alone)
    assert gated.report(model)["gates"] > 0


def _half_closed_model():
    method = AdapterBias(l0_lambda=1e-4, train_norms="none")
    model = adapt(tiny.encoder(), method)
    for name, variable in model.trained_variables().items():
        scale = 0.05 if "log_alpha" in name else 0.5
        tiny.randomize([variable], scale)
    return model


@pytest.fixture
def half_closed_folder(tmp_path):
    saving.save_adapter(_half_closed_model(), tmp_path / "adapter")
    return tmp_path / "adapter"


def test_report_has_each_share_next_to_its_start():
    model = _half_closed_model()
    report = model.method.report(model)
    assert report["gates"] == tiny.BLOCKS * (tiny.FFN_WIDTH + 1)
    assert abs(report["gates_open_expected_at_start"] - 0.8318) < 1e-3
    assert abs(report["gates_open_sampled_at_start"] - 0.83) < 0.15
    assert report["gates_exactly_zero_at_start"] == 0
    assert 0.15 < report["gates_exactly_zero"] < 0.6
    assert (
        report["gates_open_expected"] != report["gates_open_expected_at_start"]
    )


def test_weights_behind_closed_gates_are_not_saved(tmp_path):
    model = _half_closed_model()
    features = tiny.batch(model.encoder_info)
    expected = np.asarray(model(features)["sequence_output"])
    saving.save_adapter(model, tmp_path / "adapter")
    saved = adapter_folder.read_tensors(
        tmp_path / "adapter" / "adapter.safetensors"
    )
    zero_share = model.method.report(model)["gates_exactly_zero"]
    gates = tiny.BLOCKS * (tiny.FFN_WIDTH + 1)
    kept = sum(v.size for k, v in saved.items() if k.endswith("/values"))
    assert kept == round(gates * (1 - zero_share)) < gates
    loaded = saving.load_adapter(tmp_path / "adapter", tiny.encoder())
    np.testing.assert_array_equal(loaded(features)["sequence_output"], expected)


def test_training_from_an_adapter_may_open_what_it_closed(half_closed_folder):
    loaded = saving.load_adapter(half_closed_folder, tiny.encoder())
    features = tiny.batch(loaded.encoder_info)
    expected = np.asarray(loaded(features)["sequence_output"])
    head = heads.Classification(("no", "yes"))
    model = adapt(tiny.encoder(), loaded.method, head)
    saving.start_from(model, half_closed_folder)
    hidden = model.encode(features)["sequence_output"]
    np.testing.assert_allclose(hidden, expected, atol=1e-6)
    report = model.method.report(model)
    assert report["gates_exactly_zero"] == 0
    assert report["gates_open_expected"] > 0.8


_PREFIX = "block_1/block_1_alpha"


def _cut(name, count):
    return lambda t: t.update({name: t[name][:count]})


def _set(name, values, dtype="int32"):
    return lambda t: t.update({name: np.array(values, dtype)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda t: t.pop(f"{_PREFIX}/open"),
            f"Missing: {_PREFIX}/open. Unexpected: none",
        ),
        (
            lambda t: t.pop(f"{_PREFIX}/values"),
            f"Missing: {_PREFIX}/values. Unexpected: none",
        ),
        (
            lambda t: [t.pop(f"{_PREFIX}/{n}") for n in ("open", "values")],
            f"Missing: {_PREFIX}/open, {_PREFIX}/values",
        ),
        (
            _set(f"{_PREFIX}/kernel", [[1.0]] * tiny.FFN_WIDTH, "float32"),
            f"Missing: none. Unexpected: {_PREFIX}/kernel",
        ),
        (
            _set(f"{_PREFIX}/gates/scaled_log_alpha", [0.0], "float32"),
            f"Unexpected: {_PREFIX}/gates/scaled_log_alpha",
        ),
        (_cut(f"{_PREFIX}/values", 1), rf"`{_PREFIX}/values` has shape \(1,"),
        (_cut(f"{_PREFIX}/values", -1), f"`{_PREFIX}/values` has shape"),
        (
            _set(f"{_PREFIX}/open", [0, tiny.FFN_WIDTH + 1]),
            rf"`{_PREFIX}/open` must hold .* 0 to 32. Received: .*\[0, 33\]",
        ),
        (_set(f"{_PREFIX}/open", [-1, 2]), f"`{_PREFIX}/open` must hold"),
        (_set(f"{_PREFIX}/open", [2, 2]), f"`{_PREFIX}/open` must hold"),
        (_set(f"{_PREFIX}/open", [[1, 2]]), f"`{_PREFIX}/open` must hold"),
        (_set(f"{_PREFIX}/open", [0, 1], "float32"), "Received: float32"),
        (
            lambda t: t.update({"block_0/other/open": np.zeros(2, "int32")}),
            "Unexpected: block_0/other/open",
        ),
    ],
)
def test_packed_gates_load_strictly(half_closed_folder, change, message):
    """Each error names its tensor, even if NumPy would accept the values."""
    path = half_closed_folder / "adapter.safetensors"
    stored.change_weights(half_closed_folder, change)
    with pytest.raises(saving.AdapterError, match=message) as caught:
        saving.load_adapter(half_closed_folder, tiny.encoder())
    assert f"{path} does not fit the model" in str(caught.value)


def test_all_gates_may_be_closed(tmp_path):
    model = _half_closed_model()
    for name, variable in model.trained_variables().items():
        if "log_alpha" in name:
            variable.assign(np.full(variable.shape, -1.0))
    saving.save_adapter(model, tmp_path / "adapter")
    loaded = saving.load_adapter(tmp_path / "adapter", tiny.encoder())
    assert loaded.method.report(loaded)["gates_exactly_zero"] == 1


def test_gates_are_drawn_in_training_and_fixed_in_evaluation():
    model = _half_closed_model()
    features = tiny.batch(model.encoder_info)

    def output(**options):
        return np.asarray(model(features, **options)["sequence_output"])

    drawn = [output(training=True, seed=[1, 1024 * i]) for i in (1, 2)]
    assert np.abs(drawn[0] - drawn[1]).max() > 1e-3
    np.testing.assert_array_equal(output(), output())


@pytest.mark.parametrize(
    "options",
    [
        {"train_norms": "all"},
        {"alpha_input": "x"},
        {"use_alpha": False, "l0_lambda": 0.1},
    ],
)
def test_options_that_mean_nothing_are_refused(options):
    with pytest.raises(ValueError, match="train_norms|alpha_input|l0_lambda"):
        AdapterBias(**options)


def test_the_model_of_a_task_reports_its_gates():
    adapter = AdapterBias(l0_lambda=1e-3, train_norms="none")
    method = MultiTask(adapter=adapter, train_encoder=False)
    model = adapt(tiny.encoder(), method)
    assert method.report(model) == adapter.report(model) != {}
