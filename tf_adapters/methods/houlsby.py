"""Adapter tuning: Houlsby et al. 2019, arXiv:1902.00751."""

import dataclasses
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.layers.activations import Activation
from tf_adapters.layers.bottleneck import Initialization
from tf_adapters.methods.registry import register
from tf_adapters.methods.support.bottleneck_slots import BottleneckMethod

if TYPE_CHECKING:
    import keras


@register("houlsby")
@dataclasses.dataclass(frozen=True)
class Houlsby(BottleneckMethod):
    """Adds two serial bottlenecks to each block and trains all layer norms.

    The bottlenecks train `2 (2dm + d + m)` weights in each block, and each
    layer norm trains `2d` weights (sections 2.1 and 2.2).

    Attributes:
        units: Bottleneck width `m`. The paper uses 8, 64 or 256 on GLUE.
        reduction_factor: Ratio `d / m`. If set, it takes precedence over
            `units`.
        activation: Activation of the bottlenecks. The paper says only "a
            nonlinearity"; its code uses the tanh form of GELU
            (google-research/adapter-bert, modeling.py).
        initialization: See `Bottleneck`.
        init_stddev: Standard deviation of the initial kernels; 1e-2 in the
            paper (section 3.6), 1e-3 in its code.
        train_layer_norms: Whether to train all layer norms, including the
            embeddings' norm.
        leave_out: Indices of blocks without adapters.
        mixout: Rate of mixout; see `Full`.

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

    def trainable_encoder_variables(
        self, encoder: Any
    ) -> "list[keras.Variable]":
        """Returns all norms' variables if `train_layer_norms`, else `[]`."""
        return encoder.norm_variables() if self.train_layer_norms else []
