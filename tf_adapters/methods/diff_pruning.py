"""Diff pruning: Guo et al. 2021, arXiv:2012.07463."""

from collections.abc import Sequence
import dataclasses
from typing import TYPE_CHECKING
from typing import Any

import keras
from keras import ops
import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.common.types import Tensor
from tf_adapters.layers import reparameterization
from tf_adapters.layers.float32_layer import Float32Layer
from tf_adapters.layers.hard_concrete import HardConcreteGates
from tf_adapters.methods.method import Method
from tf_adapters.methods.registry import register
from tf_adapters.methods.support import difference_gating
from tf_adapters.methods.support import sparse_packing

if TYPE_CHECKING:
    from tf_adapters.layers.stateless_seeds import StatelessSeeds


@register("diff_pruning")
@dataclasses.dataclass(frozen=True)
class DiffPruning(Method):
    """Trains a sparse difference that is added to the encoder's weights.

    Training has three stages. First, the difference trains with a hard-concrete
    gate for each of its elements. Then all but the largest `share` of the
    elements are set to zero. Finally, the kept elements train further, while
    the others stay zero.

    Training needs two numbers for each weight of the encoder. The adapter
    folder stores only the kept elements and their indices.

    Attributes:
        share: Share of the encoder's weights that differ after training, 0.5 %
            in table 1.
        structured: Whether all weights of a kernel, bias or norm share one
            additional gate (section 3.2), as in the better rows of table 1.
        l0_lambda: Weight of the expected number of open gates in the loss.
        gate_temperature: See `HardConcreteGates`; the paper has no temperature.
        gate_stretch_low: See `HardConcreteGates`.
        gate_stretch_high: See `HardConcreteGates`.
        gate_initial_log_alpha: Initial logit of every gate.
        gate_learning_rate_multiplier: See `HardConcreteGates`. The authors'
            code trains gates at a learning rate of 0.1, which is 10,000 times
            the preset's learning rate.
        last_phase: Share of the training steps that follow the pruning. One
            half by default: the authors' code trains three epochs before the
            pruning and three after it.
        last_phase_learning_rate_multiplier: Positive float. Multiplies the
            learning rate after the pruning, which has its own warm-up and
            decay. 5 in the authors' code (1e-5, then 5e-5).

    Examples:
        >>> method = methods.DiffPruning(share=0.001)
        >>> tuple(tf_adapters.adapt(encoder, method, head)(features).shape)
        (2, 2)
    """

    share: float = 0.005
    structured: bool = True
    l0_lambda: float = 1.25e-7
    gate_temperature: float = 1.0
    gate_stretch_low: float = -1.5
    gate_stretch_high: float = 1.5
    gate_initial_log_alpha: float = 5.0
    gate_learning_rate_multiplier: float = 10_000.0
    last_phase: float = 0.5
    last_phase_learning_rate_multiplier: float = 5.0

    not_in_bank = (
        "It changes all weights of the encoder, which the adapters of a bank "
        "share."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("share", "last_phase"):
            if not 0 <= getattr(self, name) <= 1:
                raise UserError(
                    f"`{name}` must lie between 0 and 1. Received: "
                    f"{name}={getattr(self, name)}"
                )
        if self.last_phase_learning_rate_multiplier <= 0:
            raise UserError(
                "`last_phase_learning_rate_multiplier` must be positive. "
                f"Received: {self.last_phase_learning_rate_multiplier}"
            )

    def reparameterize(
        self, model: Any
    ) -> list[tuple[keras.Variable, keras.layers.Layer]]:
        """Returns pairs of an encoder variable and its `SparseDiff` layer."""
        pairs = []
        for variable in model.encoder_variables_read():
            layer = SparseDiff(
                variable.shape,
                sparse_packing.gate_options(self),
                self.structured,
                name=reparameterization.name_for(variable),
            )
            layer.build()
            pairs.append((variable, layer))
        return pairs

    def penalty(self, model: Any) -> Tensor:
        """Returns `l0_lambda` times the expected number of open gates.

        With `structured`, the probability that a weight's gate is open is the
        product of its own probability and its group's.
        """
        return self.l0_lambda * sum(
            difference.expected_open()
            for difference in model.reparameterization.functions
        )

    def report(self, model: Any) -> dict[str, Any]:
        """Returns a dict with the number and share of changed encoder weights.

        `weights_of_encoder` is the number of all weights that can change.
        """
        changes = difference_gating.all_changes(model)
        differ = int(np.count_nonzero(changes))
        return {
            "weights_of_encoder": changes.size,
            "weights_that_differ": differ,
            "share_that_differs": differ / changes.size,
        }

    @property
    def gating(self) -> difference_gating.DifferenceGating:
        """The `Gating` that prunes the difference and stores kept elements."""
        return difference_gating.DifferenceGating(self)


@keras.saving.register_keras_serializable("tf_adapters")
class SparseDiff(Float32Layer):
    """Replaces a variable `theta` of the encoder by `theta + z_group z w`.

    The difference `w` starts at zero. `z` has a hard-concrete gate for each
    element, and `z_group` is one gate for all elements (Guo et al. 2021,
    arXiv:2012.07463, section 3).

    Args:
        shape: Shape of `theta`.
        gates: Dict of keyword arguments of `HardConcreteGates` except `shape`.
        structured: Whether to use `z_group`.
        **kwargs: See `keras.layers.Layer`.
    """

    def __init__(
        self,
        shape: Sequence[int],
        gates: dict[str, float],
        structured: bool,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.shape = tuple(shape)
        self.gates = HardConcreteGates(self.shape, name="gates", **gates)
        self.group_gate = None
        if structured:
            self.group_gate = HardConcreteGates((), name="group", **gates)

    def build(self, input_shape: Sequence[Any] | None = None) -> None:
        self.difference = self.add_weight(
            self.shape, "zeros", name="difference"
        )
        for gates in (self.gates, self.group_gate):
            if gates is not None and not gates.built:
                gates.build(None)

    def change(self, seeds: "StatelessSeeds | None" = None) -> Tensor:
        """Returns the gated difference `z_group z w`, in float32."""
        gates = self.gates.call(seeds)
        if self.group_gate is not None:
            gates = self.group_gate.call(seeds) * gates
        return gates * ops.convert_to_tensor(self.difference)

    def call(
        self, value: Tensor, seeds: "StatelessSeeds | None" = None
    ) -> Tensor:
        return value + ops.cast(self.change(seeds), value.dtype)

    def expected_open(self) -> Tensor:
        """Returns the expected number of elements with open gates, a scalar."""
        expected = ops.sum(self.gates.expected_open())
        if self.group_gate is not None:
            expected = self.group_gate.expected_open() * expected
        return expected

    def reopen(self) -> None:
        """Makes gates trainable again after `keep` has fixed them."""
        self.gates.reopen()
        if self.group_gate is not None:
            self.group_gate.reopen()

    def keep(self, kept: np.ndarray) -> None:
        """Prunes the difference: all elements that are not kept become zero.

        Each kept element is multiplied by its own gate and, if there is one, by
        the gate of the whole weight (its group). Then the gates are fixed: the
        group's gate and the kept elements' gates at 1, the other elements'
        gates at 0.

        Args:
            kept: Boolean array of the weight's shape, true for the elements
                to keep.
        """
        self.difference.assign(ops.convert_to_numpy(self.change()) * kept)
        self.gates.fix(kept)
        if self.group_gate is not None:
            self.group_gate.fix(True)
