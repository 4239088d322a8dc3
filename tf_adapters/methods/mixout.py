"""Mixout in place of dropout, for the methods that have it."""

from keras import ops

from tf_adapters.layers import reparameterization
from tf_adapters.layers.mixout import Mixout


def mixout_pairs(rate, kernels, model):
    """Returns pairs of a kernel and its `Mixout`; none at rate 0.

    The head's kernel that follows the head's dropout is mixed as well.

    Args:
        rate: Float in `[0, 1)`.
        kernels: List of pairs of a kernel that trains and follows a dropout,
            and the number of its input axes.
        model: `AdapterModel`.
    """
    if not rate:
        return []
    after_dropout = getattr(model.head_layer, "kernel_after_dropout", None)
    if after_dropout is not None:
        kernels = [*kernels, (after_dropout, 1)]
    return [
        (kernel, _mixout(kernel, rate, num_input_axes))
        for kernel, num_input_axes in kernels
    ]


def _mixout(kernel, rate, num_input_axes):
    name = reparameterization.name_for(kernel)
    layer = Mixout(kernel.shape, rate, num_input_axes, name=name)
    layer.build()
    layer.start_from(ops.convert_to_numpy(kernel))
    return layer
