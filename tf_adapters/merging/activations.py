"""Records the unit activations of bottleneck adapters for given texts."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

import keras
import numpy as np

from tf_adapters.common.types import Tensor
from tf_adapters.layers import bottleneck_reads
from tf_adapters.layers.context import Context
from tf_adapters.layers.slot import Slot
from tf_adapters.methods.support.bottleneck_slots import BottleneckSlot
from tf_adapters.models.adapted_encoder import AdaptedEncoder
from tf_adapters.models.encoder_model import as_sequences

if TYPE_CHECKING:
    from tf_adapters.models.adapter_model import AdapterModel

_ROWS_AT_ONCE = 64


class UnitsProbe(Slot):
    """Wraps a `BottleneckSlot` to also return the activations of its units.

    The second return value of `call` is a dict with the key `"units"`.

    Args:
        slot: Built `BottleneckSlot`.
        **kwargs: See `keras.layers.Layer`.
    """

    def __init__(self, slot: BottleneckSlot, **kwargs: Any) -> None:
        super().__init__(name=f"{slot.name}_probe", **kwargs)
        self.slot = slot
        self.built = True

    def call(
        self,
        x: Tensor,
        context: Context,
        training: bool | None = None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        read = bottleneck_reads.read(self.slot.reads, x, context)
        units = self.slot.delta.activations(read)
        x, _ = self.slot(x, context=context, training=training)
        return x, {"units": units}


def unit_activations(
    model: AdapterModel, inputs: dict[str, Tensor]
) -> dict[str, np.ndarray]:
    """Returns the activations of a bottleneck adapter's units for some texts.

    Args:
        model: `AdapterModel` of Houlsby's or Pfeiffer's method.
        inputs: Dict of features, as for a call of the model. Padding tokens
            are skipped.

    Returns:
        Dict from the name of each slot to a float32 array `(tokens, units)`,
        with the tokens of all texts one after the other.
    """
    slots: list[dict[str, Slot]] = [
        {place: UnitsProbe(slot) for place, slot in block.items()}
        for block in model.slots
    ]
    encoder = AdaptedEncoder(model.encoder_info, slots)
    inputs = as_sequences(inputs)
    found = {}
    for first in range(0, len(inputs["token_ids"]), _ROWS_AT_ONCE):
        rows = {k: v[first : first + _ROWS_AT_ONCE] for k, v in inputs.items()}
        probes = encoder(rows, training=False, return_probes=True)["probes"]
        mask = np.asarray(rows["padding_mask"], bool)
        for block, reported in zip(slots, probes, strict=True):
            for place, probe in block.items():
                units = keras.ops.convert_to_numpy(reported[place]["units"])
                found.setdefault(f"{probe.slot.name}/delta", []).append(
                    units[mask].astype("float32")
                )
    return {name: np.concatenate(rows) for name, rows in found.items()}
