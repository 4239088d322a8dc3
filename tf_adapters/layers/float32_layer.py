"""The base of every layer here that has weights."""

import keras


class Float32Layer(keras.layers.Layer):
    """A layer whose weights are float32 under any of Keras's dtype policies.

    In bfloat16 a weight loses every step below a 250th of it. Where a weight is
    used, the layer casts it to the type of what it reads: Keras's own casting
    is off.

    Args:
        **kwargs: See `keras.layers.Layer`; `dtype` is `"float32"` by default.
    """

    def __init__(self, **kwargs):
        super().__init__(autocast=False, **{"dtype": "float32", **kwargs})
