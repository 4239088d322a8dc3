"""Adapters after the feed-forward network: Pfeiffer et al. 2021."""

import dataclasses

from tf_adapters.layers.activations import Activation
from tf_adapters.layers.bottleneck import Initialization
from tf_adapters.methods.registry import register
from tf_adapters.methods.support.bottleneck_slots import BottleneckMethod
from tf_adapters.methods.support.bottleneck_slots import settle_width


@register("pfeiffer")
@dataclasses.dataclass(frozen=True)
class Pfeiffer(BottleneckMethod):
    """Adds one bottleneck to each block, after the feed-forward network.

    The adapter reads `norm(x + residual)`, where `x` is the output of the
    feed-forward network. Its output is added to `x`, and the same frozen norm
    is applied again. Each block trains `2dm + d + m` weights (AdapterFusion,
    arXiv:2005.00247, section 2.2 and appendix A; configuration `seq_bn` of the
    `adapters` library).

    Attributes:
        units: Bottleneck width `m`; used if `reduction_factor` is `None`.
        reduction_factor: Ratio `d / m`. Defaults to 16 if `units` is not set
            either, as in the paper (section 4.1).
        activation: Activation of the bottleneck; ReLU in the paper (section
            4.1).
        initialization: See `Bottleneck`.
        init_stddev: Standard deviation of the initial kernels; 0.02 in the
            `adapters` library, as in BERT.
        leave_out: Indices of blocks without adapters.
        mixout: Rate of mixout; see `Full`.

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

    def __post_init__(self) -> None:
        super().__post_init__()
        settle_width(self, default_factor=16.0)
