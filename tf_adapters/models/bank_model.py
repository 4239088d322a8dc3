"""Several trained adapters on one encoder, selected per example of a batch."""

from collections.abc import Sequence
import os
from typing import Any

import keras
from keras import ops
import numpy as np

from tf_adapters import heads
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.types import Tensor
from tf_adapters.encoders.encoder import Encoder
from tf_adapters.layers.bank import BankBottleneck
from tf_adapters.layers.bank import BankHead
from tf_adapters.layers.bank import BankNorm
from tf_adapters.layers.context import Context
from tf_adapters.layers.slot import Slot
from tf_adapters.layers.slot_of_layers import SlotOfLayers
from tf_adapters.methods.support import bottleneck_slots
from tf_adapters.methods.support.bottleneck_slots import PLACEMENTS
from tf_adapters.methods.support.bottleneck_slots import UNITS_AXIS
from tf_adapters.methods.support.bottleneck_slots import WEIGHTS
from tf_adapters.models import stacked_adapters
from tf_adapters.models import trained_members
from tf_adapters.models.adapted_encoder import AdaptedEncoder
from tf_adapters.models.adapter_model import AdapterModel
from tf_adapters.models.encoder_checks import check_inputs
from tf_adapters.models.encoder_model import EncoderModel
from tf_adapters.models.trained_members import Member


class BankModel(EncoderModel):
    """An encoder with the adapters, norms and heads of several tasks.

    Made by `load_bank`, for inference only. For each example, the outputs equal
    those of a single `AdapterModel` with the example's adapter.

    Args:
        encoder: The `Encoder` that all members were trained on.
        members: Tuple of `Member`.
        **kwargs: See `keras.Model`.

    Call arguments:
        inputs: Dict as for `AdapterModel`, and `adapter_ids` `(batch,)`: the
            index in `members` of each example's adapter.

    Returns:
        `(batch, outputs)` float32, as wide as the widest head. The columns that
        a narrower head does not have are `BankHead.ABSENT`. Rows with an id
        that is not an index of `members` are NaN.

    Examples:
        >>> method = methods.Pfeiffer()
        >>> one = tf_adapters.adapt(encoder, method, head, name="one")
        >>> two = tf_adapters.adapt(encoder, method, head, name="two")
        >>> bank = tf_adapters.load_bank([one, two], encoder)
        >>> isinstance(bank, tf_adapters.BankModel), len(bank.members)
        (True, 2)
    """

    def __init__(
        self,
        encoder: Encoder,
        members: Sequence[Member],
        **kwargs: Any,
    ) -> None:
        super().__init__(encoder, trainable=False, **kwargs)
        facts = stacked_adapters.describe_stack(members, encoder)
        self.members = members
        self.encoder = AdaptedEncoder(
            encoder,
            _make_slots(encoder, members, facts),
            norms=_make_norms(encoder, members),
            name="encoder",
        )
        self.reads = stacked_adapters.common(
            members, "what their heads read", lambda m: m.head.reads
        )
        self.head_layer = _make_head(members)
        self.built = True

    def check_features(self, inputs: Any) -> None:
        """Raises a `UserError` if features or adapter ids are missing."""
        check_inputs(self.encoder, inputs)
        if "adapter_ids" not in inputs:
            raise AdapterError(
                "The inputs lack `adapter_ids`: for each example, the index "
                f"of its adapter among the bank's {len(self.members)}."
            )

    def feature_shapes(self) -> dict[str, tuple[None, ...]]:
        """Returns a dict from the name of an input to its shape."""
        names = [tensor.name for tensor in self.encoder.embeddings.inputs]
        return dict.fromkeys(names, (None, None)) | {"adapter_ids": (None,)}

    def call(
        self, inputs: dict[str, Tensor], training: bool | None = None
    ) -> Tensor:
        ids = ops.clip(inputs["adapter_ids"], 0, len(self.members) - 1)
        outputs = self.encoder(
            {**inputs, "adapter_ids": ids},
            training=False,
            first_token_only=True,
        )
        if self.reads == "first_token":
            read = outputs["first_token_output"]
        else:
            read = outputs["pooled_output"]
        is_there = ops.equal(ids, inputs["adapter_ids"])[:, None]
        # A negative index would count from the end.
        return ops.where(is_there, self.head_layer(read, ids), float("nan"))


def load_bank(
    adapters: Sequence[str | os.PathLike[str] | AdapterModel], encoder: Encoder
) -> BankModel:
    """Returns a `BankModel` of trained adapters, in the given order.

    Args:
        adapters: Paths of adapter folders or of runs that contain one, or
            models in memory, each an `AdapterModel`.
        encoder: The `Encoder` they were trained on, freshly loaded.

    Raises:
        AdapterError: If an adapter is damaged, belongs to another encoder,
            trained the encoder's kernels or biases, has no head or a head that
            is neither classification nor regression, or differs from the others
            in placement, activation or left-out blocks.

    Examples:
        >>> method = methods.Pfeiffer()
        >>> one = tf_adapters.adapt(encoder, method, head, name="one")
        >>> two = tf_adapters.adapt(encoder, method, head, name="two")
        >>> bank = tf_adapters.load_bank([one, two], encoder)
        >>> outputs = bank({**features, "adapter_ids": np.array([0, 1])})
        >>> outputs.shape[0]  # Row 0 by adapter `one`, row 1 by `two`.
        2
    """
    members = trained_members.read_members(adapters, encoder)
    for member in members:
        if member.head is None:
            raise AdapterError(
                f"{member.source} has no head, so a bank could not answer "
                "with it."
            )
        if not member.head.is_linear:
            kind = heads.name_of(member.head)
            raise AdapterError(
                f"The head of {member.source} is a {kind}, but a bank answers "
                "only with classes and numbers. Leave it out, and export it "
                "alone with --mode=export --model_dir=<its run>."
            )
        if len(member.head.feature_shape) > 2:
            raise AdapterError(
                f"The head of {member.source} pools the windows of a long "
                "text, but a bank reads one input for each text. Leave it "
                "out, and export it alone with --mode=export --model_dir=<its "
                "run>."
            )
    return BankModel(encoder, members)


def _make_slots(
    encoder: Encoder, members: Sequence[Member], facts: dict[str, Any]
) -> list[dict[str, Slot]]:
    places, reads = PLACEMENTS[facts["placement"]]
    width = encoder.backbone.hidden_dim
    slots = [{} for _ in range(encoder.backbone.num_layers)]
    for block, slots_of_block in enumerate(slots):
        if block in facts["leave_out"]:
            continue
        for place in places:
            name = f"block_{block}_{place}"
            slot = BankSlot(
                reads,
                len(members),
                facts["units"],
                facts["activation"],
                name=name,
            )
            slot.build((None, None, width))
            for weight in WEIGHTS:
                arrays = stacked_adapters.arrays(
                    members,
                    f"{name}/delta/{weight}",
                    facts["units"],
                    UNITS_AXIS.get(weight),
                )
                getattr(slot.bank, weight).assign(np.stack(arrays))
            slots_of_block[place] = slot
    return slots


@keras.saving.register_keras_serializable("tf_adapters")
class BankSlot(SlotOfLayers):
    """Computes `x + delta_n(reads(x, context))` for each example's adapter `n`.

    Args:
        reads: Input of the bottlenecks, one of `bottleneck_slots.Reads`.
        num_adapters: See `BankBottleneck`.
        units: See `BankBottleneck`.
        activation: See `BankBottleneck`.
        **kwargs: See `keras.layers.Layer`.
    """

    def __init__(
        self,
        reads: str,
        num_adapters: int,
        units: int,
        activation: str,
        **kwargs: Any,
    ) -> None:
        super().__init__(**{**kwargs, "trainable": False})
        self.reads = reads
        self.bank = BankBottleneck(num_adapters, units, activation, name="bank")

    def call(
        self,
        x: Tensor,
        context: Context,
        training: bool | None = None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        read = bottleneck_slots.read(self.reads, x, context)
        return x + self.bank(read, context.adapter_ids), {}


def _make_norms(
    encoder: Encoder, members: Sequence[Member]
) -> list[BankNorm] | None:
    """Returns a `BankNorm` for each norm, or `None` if no member trained any.

    For members that trained no norms, the encoder's own are used.
    """
    adapted = AdaptedEncoder(encoder)
    own = adapted.norm_variables()
    if not any(v.path in m.tensors for v in own for m in members):
        return None
    norms = []
    for own_norm in adapted.norms():
        norm = BankNorm(len(members))
        norm.build(own_norm.gamma.shape)
        pairs = (norm.gammas, own_norm.gamma), (norm.betas, own_norm.beta)
        for weight, variable in pairs:
            # A norm without an offset equals a norm with offset 0.
            if variable is None:
                continue
            arrays: list[Any] = [
                m.tensors.get(variable.path, variable) for m in members
            ]
            weight.assign(np.stack(arrays))
        norms.append(norm)
    return norms


def _make_head(members: Sequence[Member]) -> BankHead:
    kernels = [member.tensors["head/kernel"] for member in members]
    outputs = max(kernel.shape[1] for kernel in kernels)
    head = BankHead(len(members), outputs, name="heads")
    head.build((None, len(kernels[0])))
    padded = [stacked_adapters.widened(k, outputs, 1) for k in kernels]
    head.kernel.assign(np.stack(padded))
    biases = [member.tensors["head/bias"] for member in members]
    padded = [
        stacked_adapters.widened(bias, outputs, 0, head.ABSENT)
        for bias in biases
    ]
    head.bias.assign(np.stack(padded))
    return head
