"""A trained, gated difference to a frozen weight."""

import keras
from keras import ops

from tf_adapters.layers.float32_layer import Float32Layer
from tf_adapters.layers.hard_concrete import HardConcreteGates


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
