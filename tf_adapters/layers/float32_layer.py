"""The base class of all layers with weights in this package."""

from typing import Any

import keras


class Float32Layer(keras.layers.Layer):
    """A layer that keeps its weights in float32 under any Keras dtype policy.

    In bfloat16, an update of less than about 1/250 of a weight would be lost.
    Keras's autocasting is disabled. A layer casts its weights to the type of
    its input where it uses them.

    Args:
        **kwargs: See `keras.layers.Layer`; `dtype` is `"float32"` by default.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(autocast=False, **{"dtype": "float32", **kwargs})
