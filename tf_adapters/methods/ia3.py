"""(IA)^3: Liu et al. 2022, arXiv:2205.05638, as in AdapterHub or PEFT."""

from collections.abc import Callable
from collections.abc import Sequence
import dataclasses
import typing
from typing import Any

import keras
from keras import ops

from tf_adapters.common.checks import check_known
from tf_adapters.common.types import Tensor
from tf_adapters.layers.banks.bank_layer import Part
from tf_adapters.layers.banks.projections import BankRescale
from tf_adapters.layers.context import Context
from tf_adapters.layers.slot import Slot
from tf_adapters.methods.method import EncoderShape
from tf_adapters.methods.method import Method
from tf_adapters.methods.registry import register

# For each form, a dict from projection to the rescaled side of the projection.
_FORMS = {
    # Keys, values, and the input of the feed-forward network's activation
    # (`IA3Config` of `adapters` 1.3.0).
    "adapterhub": {"key": "output", "value": "output", "ffn_up": "output"},
    # Keys, values, and the inputs of both layers called `output.dense`, in
    # attention and in the feed-forward network (`IA3Config` of `peft` 0.21.2
    # for BERT).
    "peft": {
        "key": "output",
        "value": "output",
        "output": "input",
        "ffn_down": "input",
    },
}


@register("ia3")
@dataclasses.dataclass(frozen=True)
class IA3(Method):
    """Multiplies keys, values and activations by trained vectors.

    The encoder is frozen, and the vectors start at 1. If `d` is the encoder's
    width and `f` is the width of its feed-forward network, each block trains
    `2 d + f` weights in AdapterHub's form and `3 d + f` weights in PEFT's.

    Attributes:
        form: `"adapterhub"` (default, and the paper's choice for its encoder)
            rescales keys, values, and the feed-forward network before its
            activation. `"peft"` rescales keys, values, the feed-forward network
            after its activation, and the input of attention's output
            projection. The two forms compute different functions.
        leave_out: Indices of blocks without vectors.

    Examples:
        >>> as_in_peft = methods.IA3(form="peft")
        >>> tuple(tf_adapters.adapt(encoder, as_in_peft, head)(features).shape)
        (2, 2)
    """

    form: typing.Literal["adapterhub", "peft"] = "adapterhub"
    leave_out: tuple[int, ...] = ()

    def make_slots(self, shape: EncoderShape) -> list[dict[str, Slot]]:
        """Returns each block's slots: a list of dicts from place to slot."""
        sides = _FORMS[self.form]

        def make(projection: str, name: str) -> "Rescale":
            side = sides[projection]
            width = shape.of_projection(projection)[side == "output"]
            return Rescale(width, side, name=name)

        return self.fill_places(shape, sides, make)


@keras.saving.register_keras_serializable("tf_adapters")
class Rescale(Slot):
    """Slot that computes `l * project(x)` or `project(l * x)`.

    `project` is the projection at which the slot is attached.

    Args:
        width: Integer. Length of the vector `l`, which starts at 1.
        side: Which side of the projection is multiplied by `l`: `"output"` or
            `"input"`.
        **kwargs: See `keras.layers.Layer`.
    """

    def __init__(self, width: int, side: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        check_known("side", side, ("input", "output"))
        self.width = width
        self.side = side

    def build(self, input_shape: Sequence[Any] | None = None) -> None:
        self.vector = self.add_weight((self.width,), "ones", name="vector")

    def call(
        self,
        x: Tensor,
        project: Callable[[Tensor], Tensor],
        context: Context,
        training: bool | None = None,
    ) -> Tensor:
        vector = ops.cast(self.vector, x.dtype)
        if self.side == "input":
            return project(x * vector)
        return project(x) * vector

    def bank_parts(self) -> list[Part]:
        """Returns the vector `l` as a bank stores it, a list of one `Part`."""
        return [BankRescale.part({"vector": self.vector}, side=self.side)]
