"""Compares the slots of Houlsby and Pfeiffer with the papers, in NumPy."""

import numpy as np
import pytest

from tests import tiny
from tests.references import methods_numpy as reference
from tf_adapters.common.errors import UserError
from tf_adapters.layers import Context
from tf_adapters.methods import BottleneckForms
from tf_adapters.methods import Compacter
from tf_adapters.methods import Houlsby
from tf_adapters.methods import LoRA
from tf_adapters.methods import Pfeiffer
from tf_adapters.methods.method import EncoderShape

WIDTH, UNITS = 6, 4
RANDOM = np.random.default_rng(0)
X, RESIDUAL = RANDOM.normal(size=(2, 2, 5, WIDTH)).astype("float32")
GAMMA, BETA = RANDOM.normal(size=(2, WIDTH))


def _norm(value):
    return reference.layer_norm(np.float64(value), GAMMA, BETA, 1e-5)


def _tf_norm(value, adapter_rows):
    return _norm(np.asarray(value)).astype("float32")


@pytest.mark.parametrize(
    ("method", "place", "read"),
    [
        (Houlsby(units=UNITS), "after_attention", X),
        (Houlsby(units=UNITS), "after_ffn", X),
        (Pfeiffer(units=UNITS), "after_ffn", _norm(X + RESIDUAL)),
    ],
)
def test_a_bottleneck_joins_what_its_paper_reads(method, place, read):
    slot = method.make_slots(EncoderShape(1, WIDTH, 4 * WIDTH))[0][place]
    slot.build(X.shape)
    tiny.randomize(slot.variables, scale=1.0)
    weights = [np.float64(value) for value in tiny.values(slot.variables)]
    context = Context(None, residual=RESIDUAL, norm=_tf_norm)
    output, probes = slot(X, context=context)
    delta = reference.bottleneck(np.float64(read), *weights, method.activation)
    assert np.abs(delta).max() > 1 and probes == {}
    np.testing.assert_allclose(output, X + delta, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("method", "places"),
    [
        (Houlsby(units=UNITS), ("after_attention", "after_ffn")),
        (Pfeiffer(units=UNITS), ("after_ffn",)),
    ],
)
def test_names_of_weights_are_those_of_saved_adapters(method, places):
    """Renaming a layer would make every adapter folder unreadable."""
    (slots,) = method.make_slots(EncoderShape(1, WIDTH, 4 * WIDTH))
    assert tuple(slots) == places
    for place, slot in slots.items():
        slot.build(X.shape)
        assert [variable.path for variable in slot.variables] == [
            f"block_0_{place}/delta/{name}"
            for name in ("down_kernel", "down_bias", "up_kernel", "up_bias")
        ]


@pytest.mark.parametrize("factor", [0, -3, float("nan")])
@pytest.mark.parametrize("method", [Houlsby, Pfeiffer])
def test_a_reduction_factor_is_positive(method, factor):
    with pytest.raises(UserError, match="a positive number|a finite number"):
        method(reduction_factor=factor)


def test_a_choice_is_one_of_its_type():
    with pytest.raises(UserError, match="`relus`.*Did you mean `relu`"):
        Houlsby(activation="relus")


@pytest.mark.parametrize(
    "method", [Pfeiffer, Houlsby, BottleneckForms, Compacter, LoRA]
)
def test_a_list_is_a_tuple_of_the_same(method):
    found = method(leave_out=[0])
    assert found == method(leave_out=(0,))
    assert hash(found) == hash(method(leave_out=(0,)))
