"""Adapter tuning: Houlsby et al. 2019, arXiv:1902.00751."""

import dataclasses

from tf_adapters.layers.activations import Activation
from tf_adapters.layers.bottleneck import Initialization
from tf_adapters.methods.method import register
from tf_adapters.methods.support.bottleneck_slots import BottleneckMethod


@register("houlsby")
@dataclasses.dataclass(frozen=True)
class Houlsby(BottleneckMethod):
    """Two serial bottlenecks in each block; layer norms and the head train too.

    Trains `2 (2dm + d + m)` weights a block, and two a norm and dimension
    (sections 2.1 and 2.2).

    Attributes:
        units: Bottleneck width `m`. The paper takes 8, 64 or 256 on GLUE.
        reduction_factor: `d / m`; where given it wins over `units`.
        activation: The paper says only "a nonlinearity"; its code has GELU in
            the tanh form (google-research/adapter-bert, modeling.py).
        initialization: See `Bottleneck`.
        init_stddev: 1e-2 in the paper (section 3.6), 1e-3 in its code.
        train_layer_norms: Whether all layer norms train, the embedding's too.
        leave_out: Indices of blocks without adapters.
        mixout: Rate of mixout, see `Full`.

    Examples:
        >>> method = methods.Houlsby(units=8, train_layer_norms=False)
        >>> tuple(tf_adapters.adapt(encoder, method, head)(features).shape)
        (2, 2)
    """

    units: int = 64
    reduction_factor: float | None = None
    activation: Activation = "gelu_tanh"
    initialization: Initialization = "truncated_normal"
    init_stddev: float = 1e-2
    train_layer_norms: bool = True
    leave_out: tuple[int, ...] = ()
    mixout: float = 0.0

    stacks_as = "houlsby"

    def trainable_encoder_variables(self, encoder):
        """Returns gamma and beta of every layer norm, or nothing."""
        return encoder.norm_variables() if self.train_layer_norms else []
