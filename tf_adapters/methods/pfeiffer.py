"""Adapters after the feed-forward network: Pfeiffer et al. 2021."""

import dataclasses

from tf_adapters.layers.activations import Activation
from tf_adapters.layers.bottleneck import Initialization
from tf_adapters.methods.method import register
from tf_adapters.methods.support.bottleneck_slots import BottleneckMethod
from tf_adapters.methods.support.bottleneck_slots import settle_width


@register("pfeiffer")
@dataclasses.dataclass(frozen=True)
class Pfeiffer(BottleneckMethod):
    """One bottleneck in each block, which reads the block's normed output.

    The adapter sees `norm(x + residual)`; its result joins `x` before the same
    frozen norm is applied again. Trains `2dm + d + m` weights a block
    (AdapterFusion, arXiv:2005.00247, section 2.2 and appendix A; `adapters`
    library, configuration `seq_bn`).

    Attributes:
        units: Bottleneck width `m`; used if `reduction_factor` is `None`.
        reduction_factor: `d / m`; 16 if neither is given, as in the paper
            (section 4.1).
        activation: ReLU in the paper (section 4.1).
        initialization: See `Bottleneck`.
        init_stddev: 0.02 in the `adapters` library, as in BERT.
        leave_out: Indices of blocks without adapters.
        mixout: Rate of mixout, see `Full`.

    Examples:
        >>> method = methods.Pfeiffer(units=4, leave_out=(0,))
        >>> tuple(tf_adapters.adapt(encoder, method, head)(features).shape)
        (2, 2)
    """

    units: int | None = None
    reduction_factor: float | None = None
    activation: Activation = "relu"
    initialization: Initialization = "normal"
    init_stddev: float = 2e-2
    leave_out: tuple[int, ...] = ()
    mixout: float = 0.0

    stacks_as = "pfeiffer"

    def __post_init__(self):
        settle_width(self, default_factor=16.0)
        super().__post_init__()
