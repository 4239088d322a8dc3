"""AdapterBias: a shift of each token vector along a trained direction."""

from collections.abc import Iterable
import dataclasses
import typing
from typing import Any

import keras
import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.common.types import Tensor
from tf_adapters.layers.adapter_bias import TokenWeight
from tf_adapters.layers.adapter_bias import Vector
from tf_adapters.layers.banks.bank_layer import Part
from tf_adapters.layers.banks.branches import BankShift
from tf_adapters.layers.context import Context
from tf_adapters.layers.hard_concrete import HardConcreteGates
from tf_adapters.layers.slot import Slot
from tf_adapters.layers.slot_of_layers import SlotGivenLayers
from tf_adapters.methods.method import EncoderShape
from tf_adapters.methods.method import Method
from tf_adapters.methods.registry import register
from tf_adapters.methods.support import sparse_packing


@register("adapter_bias")
@dataclasses.dataclass(frozen=True)
class AdapterBias(Method):
    """Adds `alpha(token) v` to the output of each block's feed-forward network.

    `v` is a trained vector of width `d`. `alpha` is computed by the linear
    layer `L_alpha`, which has one weight for each of its inputs and a bias.
    The paper, its code and its printed counts disagree in some points; the
    options cover all of them (see `docs/papers.md`).

    Attributes:
        alpha_input: Input of `L_alpha`. `"intermediate"` (default): the
            activation of the feed-forward network, as in the authors' code and
            in the counts of table 4. `"residual"`: the normalized output of
            attention, as in figure 3.
        use_alpha: Whether to use `L_alpha`. If false, the shift is `v` for
            every token ("w/o L_alpha", table 3).
        share_vector: Whether all blocks share one `v` (table 4).
        share_alpha: Whether all blocks share one `L_alpha` (table 4).
        train_norms: Layer norms that train. `"ffn"` (default): the second norm
            of each block, as in section 4.1. `"block"`: both norms of each
            block, as in the printed counts. `"ffn_and_embedding"`: the second
            norms and the embeddings' norm, as in the code. `"none"`: no norms.
        l0_lambda: Weight of the expected number of open gates in the loss
            (equation 2). `None` (default) disables the gates.
        gate_temperature: See `HardConcreteGates`.
        gate_stretch_low: See `HardConcreteGates`.
        gate_stretch_high: See `HardConcreteGates`.
        gate_learning_rate_multiplier: See `HardConcreteGates`.
        leave_out: Indices of blocks without the shift.

    Examples:
        >>> gated = methods.AdapterBias(l0_lambda=1e-3)
        >>> model = tf_adapters.adapt(encoder, gated, head)
        >>> gated.report(model)["gates_exactly_zero"]
        0.0
    """

    alpha_input: typing.Literal["intermediate", "residual"] = "intermediate"
    use_alpha: bool = True
    share_vector: bool = False
    share_alpha: bool = False
    train_norms: typing.Literal["none", "ffn", "block", "ffn_and_embedding"] = (
        "ffn"
    )
    l0_lambda: float | None = None
    gate_temperature: float = 2 / 3
    gate_stretch_low: float = -0.1
    gate_stretch_high: float = 1.1
    gate_learning_rate_multiplier: float = 100.0
    leave_out: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.l0_lambda is not None and not self.use_alpha:
            raise UserError(
                "`l0_lambda` gates the weights of L_alpha, but `use_alpha` is "
                "false. Leave one of the two out."
            )

    def make_slots(self, shape: EncoderShape) -> list[dict[str, Slot]]:
        """Returns each block's slots: a list of dicts from place to slot."""
        reads_ffn = self.alpha_input == "intermediate"
        input_width = shape.ffn_width if reads_ffn else shape.width
        shared_vector = Vector(shape.width, name="shared_vector")
        shared_alpha = self._token_weight(input_width, "shared_alpha")
        slots = []
        for i, kept in enumerate(self.kept_blocks(shape)):
            vector, alpha = shared_vector, shared_alpha
            if not self.share_vector:
                vector = Vector(shape.width, name=f"block_{i}_vector")
            if not self.share_alpha:
                alpha = self._token_weight(input_width, f"block_{i}_alpha")
            slot = Shift(vector, alpha, self.alpha_input, name=f"block_{i}")
            slots.append({"after_ffn": slot} if kept else {})
        return slots

    def _token_weight(self, input_width: int, name: str) -> TokenWeight | None:
        if not self.use_alpha:
            return None
        gates = (
            None
            if self.l0_lambda is None
            else sparse_packing.gate_options(self)
        )
        return TokenWeight(input_width, gates, name=name)

    def trainable_encoder_variables(self, encoder: Any) -> list[keras.Variable]:
        """Returns the variables of the norms that `train_norms` selects."""
        norms = []
        if self.train_norms == "ffn_and_embedding":
            norms.append(encoder.embedding_norm)
        if self.train_norms != "none":
            norms += [block.ffn_norm for block in encoder.blocks]
        if self.train_norms == "block":
            norms = [n for block in encoder.blocks for n in block.norms()]
        return [variable for norm in norms for variable in norm.variables]

    def penalty(self, model: Any) -> Tensor:
        """Returns `l0_lambda` times the expected number of open gates.

        A gate that several blocks share is counted once.
        """
        if self.l0_lambda is None:
            return 0.0
        return self.l0_lambda * sum(
            keras.ops.sum(gate.expected_open())
            for gate in _gates(model.own_slots())
        )

    def report(self, model: Any) -> dict[str, Any]:
        """Returns a dict with the number of gates and the shares of open ones.

        The shares are those of table 7. Each share is followed by the value
        that it has for untrained gates (`..._at_start`).
        The expected share starts at 0.83, so a result of "83 % remain" means
        that training closed no gates. If there are no gates, the dict is empty.
        """
        gates = _gates(model.own_slots())
        if not gates:
            return {}
        seeds = keras.random.SeedGenerator(0)
        expected = _in_a_row(g.expected_open() for g in gates)
        exact = _in_a_row(g.call() for g in gates)
        sampled = _in_a_row(g.call(seeds) for g in gates)
        untrained = type(gates[0]).from_config(gates[0].get_config())
        untrained.build()
        start = _in_a_row([untrained.expected_open()])
        drawn = _in_a_row([untrained.call(seeds)])
        fixed = _in_a_row([untrained.call()])
        return {
            "gates": int(exact.size),
            "gates_open_expected": float(expected.mean()),
            "gates_open_expected_at_start": float(start.mean()),
            "gates_open_sampled": float((sampled > 0).mean()),
            "gates_open_sampled_at_start": float((drawn > 0).mean()),
            "gates_exactly_zero": float((exact == 0).mean()),
            "gates_exactly_zero_at_start": float((fixed == 0).mean()),
        }

    @property
    def gating(self) -> "TokenWeightGating":
        """The `Gating` that stores only weights with nonzero gates."""
        return TokenWeightGating(self)


def _in_a_row(tensors: Iterable[Tensor]) -> np.ndarray:
    return np.concatenate([keras.ops.convert_to_numpy(t) for t in tensors])


def _gates(slots: Iterable[Slot]) -> list[HardConcreteGates]:
    """Returns the `HardConcreteGates` of all slots, shared ones only once."""
    alphas = (slot.alpha for slot in slots if isinstance(slot, Shift))
    gates = (alpha.gates for alpha in alphas if alpha is not None)
    return list({id(gate): gate for gate in gates if gate is not None}.values())


class TokenWeightGating(sparse_packing.SparseGating):
    """Stores and reopens the gated kernel and bias of each `TokenWeight`."""

    replaced = (sparse_packing.GATES, "/kernel", "/bias")
    certain = 20.0

    def reopen(self, model: Any) -> None:
        for gates in _gates(model.own_slots()):
            gates.reopen()

    def take_weights(
        self, tensors: dict[str, np.ndarray], prefix: str
    ) -> tuple[np.ndarray, np.ndarray]:
        gates, kernel, bias = (
            tensors.pop(prefix + end) for end in self.replaced
        )
        weights = np.concatenate([kernel[:, 0], bias])
        return self.gate_values(gates), weights

    def restored(
        self,
        shapes: dict[str, tuple[int, ...]],
        prefix: str,
        weights: np.ndarray,
        logits: np.ndarray,
    ) -> dict[str, np.ndarray]:
        arrays = logits, weights[:-1, None], weights[-1:]
        return dict(zip(self.replaced, arrays, strict=True))


@keras.saving.register_keras_serializable("tf_adapters")
class Shift(SlotGivenLayers):
    """Slot that computes `x + alpha(token) v`, and reports `alpha` as a probe.

    Args:
        vector: `Vector` that holds `v`, possibly shared with other blocks.
        alpha: `TokenWeight`, possibly shared with other blocks, or `None` if
            `alpha(token)` is always 1.
        alpha_input: Input of `alpha`: `"intermediate"` or `"residual"`.
        **kwargs: See `keras.layers.Layer`.

    Returns:
        The sum, of the shape of `x`, and a dict with the probe `"alpha"` of
        shape `(batch, tokens, 1)`. If `alpha` is `None`, the dict is empty.
    """

    arguments = ("vector", "alpha", "alpha_input")

    def __init__(
        self,
        vector: Vector,
        alpha: TokenWeight | None,
        alpha_input: str,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.vector = vector
        self.alpha = alpha
        self.alpha_input = alpha_input

    def call(
        self,
        x: Tensor,
        context: Context,
        training: bool | None = None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        vector = keras.ops.cast(self.vector.call(), x.dtype)
        if self.alpha is None:
            return x + vector, {}
        weight = self.alpha(
            getattr(context, self.alpha_input), seeds=context.seeds
        )
        return x + weight * vector, {"alpha": weight}

    def bank_parts(self) -> list[Part]:
        """Returns `v` and the weights of `alpha` as a bank stores them.

        The result is a list of one `Part`. If `alpha` is `None`, its weights
        are a kernel of zeros and a bias of 1.
        """
        vector, reads = self.vector.call(), self.alpha_input
        if self.alpha is None:
            kernel, bias = np.zeros((vector.shape[0], 1)), np.ones(1)
            reads = "residual"
        else:
            kernel, bias = self.alpha.gated_weights()
        arrays = {"vector": vector, "kernel": kernel, "bias": bias}
        return [BankShift.part(arrays, reads=reads)]
