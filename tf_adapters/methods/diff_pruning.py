"""Diff pruning: Guo et al. 2021, arXiv:2012.07463."""

import dataclasses

import keras
from keras import ops
import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.layers import reparameterization
from tf_adapters.layers.float32_layer import Float32Layer
from tf_adapters.layers.hard_concrete import HardConcreteGates
from tf_adapters.methods.method import Method
from tf_adapters.methods.method import register
from tf_adapters.methods.support import sparse_packing


@register("diff_pruning")
@dataclasses.dataclass(frozen=True)
class DiffPruning(Method):
    """Trains a sparse difference to all of the encoder's weights.

    Three phases: the difference trains with a hard-concrete gate for each of
    its elements; then all but the largest `share` of its elements become zero;
    then these train on, the others fixed at zero. In training it needs two
    numbers for each weight of the encoder; what is saved are `share` of them
    and their places.

    Attributes:
        share: Share of the encoder's weights that differ in the end, 0.5 % in
            table 1.
        structured: Whether all weights of one kernel, bias or norm share one
            more gate (section 3.2), as in the better rows of table 1.
        l0_lambda: Weight of the expected number of open gates in the loss.
        gate_temperature: See `HardConcreteGates`; the paper has none.
        gate_stretch_low: See `HardConcreteGates`.
        gate_stretch_high: See `HardConcreteGates`.
        gate_initial_log_alpha: Logit of every gate at the start.
        gate_learning_rate_multiplier: See `HardConcreteGates`. The authors'
            code trains gates at 0.1, 10,000 times the rate of the preset.
        last_phase: Share of the steps after the pruning: half of them, as the
            authors' code has three epochs before and three after it.
        last_phase_learning_rate_multiplier: Positive float. The few weights
            that are left then train at so many times the rate of the first
            phase, with a warm-up and decay of their own (5 in the authors'
            code: 1e-5, then 5e-5).

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

    def __post_init__(self):
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

    def reparameterize(self, model):
        """Returns pairs of a weight of the encoder and its `SparseDiff`."""
        pairs = []
        for variable in model.encoder_variables_read():
            layer = SparseDiff(
                variable.shape,
                self._gate_options(),
                self.structured,
                name=reparameterization.name_for(variable),
            )
            layer.build()
            pairs.append((variable, layer))
        return pairs

    def _gate_options(self):
        return {
            "temperature": self.gate_temperature,
            "stretch_low": self.gate_stretch_low,
            "stretch_high": self.gate_stretch_high,
            "learning_rate_multiplier": self.gate_learning_rate_multiplier,
            "initial_log_alpha": self.gate_initial_log_alpha,
        }

    def penalty(self, model):
        """Returns `lambda` times the expected number of open gates.

        A weight counts by the product of its own and its group's probability.
        """
        return self.l0_lambda * sum(
            difference.expected_open()
            for difference in model.reparameterization.functions
        )

    def last_phase_step(self, total_steps):
        """Returns the step after which the difference is pruned."""
        return max(1, round(total_steps * (1 - self.last_phase)))

    def start_last_phase(self, model):
        """Keeps the `share` of the encoder's weights that differ most.

        Never more: the number is rounded down. Under Keras's own `fit`, which
        knows no phases, call it between two of them.
        """
        differences = model.reparameterization.functions
        changes = [ops.convert_to_numpy(d.change()) for d in differences]
        sizes = np.concatenate([np.abs(change).ravel() for change in changes])
        count = int(self.share * len(sizes))
        kept = np.zeros(len(sizes), bool)
        kept[np.argpartition(-sizes, count - 1)[:count]] = True
        ends = np.cumsum([change.size for change in changes])
        for difference, change, part in zip(
            differences, changes, np.split(kept, ends[:-1]), strict=True
        ):
            difference.keep(part.reshape(change.shape))

    def reopen(self, model):
        """Lets training choose anew which weights differ."""
        for difference in model.reparameterization.functions:
            difference.reopen()

    def report(self, model):
        """Returns how many of the encoder's weights differ."""
        changes = [
            ops.convert_to_numpy(difference.change())
            for difference in model.reparameterization.functions
        ]
        differ = sum(int(np.count_nonzero(change)) for change in changes)
        weights = sum(change.size for change in changes)
        return {
            "weights_of_encoder": weights,
            "weights_that_differ": differ,
            "share_that_differs": differ / weights,
        }

    def pack(self, tensors):
        """Returns tensors for saving: only elements with open gates."""
        return sparse_packing.pack_differences(tensors, self._gate_options())

    def unpack(self, tensors, shapes):
        """Returns the tensors that `pack` made smaller; gates are 0 or 1."""
        return sparse_packing.unpack_differences(
            tensors, shapes, self._gate_options()
        )


@keras.saving.register_keras_serializable("tf_adapters")
class SparseDiff(Float32Layer):
    """Gives a weight `theta` the value `theta + z_group z w`.

    `w` starts at zero; `z` is a hard-concrete gate for each of its elements,
    `z_group` one for all of them (Guo et al. 2021, arXiv:2012.07463, section
    3).

    Args:
        shape: Shape of the weight.
        gates: Keyword arguments of `HardConcreteGates`, without its shape.
        structured: Whether there is `z_group`.

    Call arguments:
        value: The weight's own value.
        seeds: `StatelessSeeds` in training. `None`: gates are deterministic.

    Returns:
        Tensor of the weight's shape.
    """

    def __init__(self, shape, gates, structured, **kwargs):
        super().__init__(**kwargs)
        self.shape = tuple(shape)
        self.gates = HardConcreteGates(self.shape, name="gates", **gates)
        self.group_gate = None
        if structured:
            self.group_gate = HardConcreteGates((), name="group", **gates)

    def build(self, input_shape=None):
        self.difference = self.add_weight(
            self.shape, "zeros", name="difference"
        )
        for gates in (self.gates, self.group_gate):
            if gates is not None and not gates.built:
                gates.build(None)

    def change(self, seeds=None):
        """Returns `z_group z w`, in float32."""
        gates = self.gates.call(seeds)
        if self.group_gate is not None:
            gates = self.group_gate.call(seeds) * gates
        return gates * ops.convert_to_tensor(self.difference)

    def call(self, value, seeds=None):
        return value + ops.cast(self.change(seeds), value.dtype)

    def expected_open(self):
        """Returns how many elements are expected not to be closed, a scalar."""
        expected = ops.sum(self.gates.expected_open())
        if self.group_gate is not None:
            expected = self.group_gate.expected_open() * expected
        return expected

    def reopen(self):
        """Lets gates train again that `keep` fixed."""
        self.gates.reopen()
        if self.group_gate is not None:
            self.group_gate.reopen()

    def keep(self, kept):
        """Fixes the gates and leaves `kept` of the difference, for good.

        Args:
            kept: Boolean array of the weight's shape.
        """
        self.difference.assign(ops.convert_to_numpy(self.change()) * kept)
        self.gates.fix(kept)
        if self.group_gate is not None:
            self.group_gate.fix(True)
