"""Tests unions whose parts do not fit together."""

import dataclasses

import pytest

from tf_adapters import methods
from tf_adapters.common.errors import UserError

SHAPE = methods.EncoderShape(num_blocks=1, width=4, ffn_width=8)


@dataclasses.dataclass(frozen=True)
class _NoSlots(methods.Method):
    def make_slots(self, shape):
        return []


def test_mixout_with_drawn_gates_is_refused():
    mixing = methods.Pfeiffer(units=2, mixout=0.5)
    methods.Union((mixing, methods.AdapterBias()))
    with pytest.raises(UserError, match="^Mixout .* gates of another part"):
        methods.Union((mixing, methods.AdapterBias(l0_lambda=1e-3)))


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (methods.Pfeiffer(units=3), "^Two parts .* attached at `after_ffn`"),
        # Its slot is after the norm, a place of its own.
        (
            methods.BottleneckForms(pretrained_norm="none", units=2),
            "^Two parts .* slots of the same name, `block_0_after_ffn`",
        ),
        (_NoSlots(), r"^`make_slots` of _NoSlots .* 1 blocks. Received: \[\]"),
    ],
)
def test_parts_in_each_other_s_way_are_refused(part, message):
    union = methods.Union((methods.Pfeiffer(units=2), part))
    with pytest.raises(UserError, match=message):
        union.make_slots(SHAPE)
