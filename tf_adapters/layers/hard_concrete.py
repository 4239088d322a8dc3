"""Gates that can close: the stretched hard-concrete distribution."""

import math

import keras
from keras import ops
import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.layers.float32_layer import Float32Layer


@keras.saving.register_keras_serializable("tf_adapters")
class HardConcreteGates(Float32Layer):
    """One gate in `[0, 1]` for each weight, with exact zeros and ones.

    In training a gate is drawn: with `u` uniform in `(0, 1)`,

        s = sigmoid((log u - log(1 - u) + log_alpha) / temperature)
        z = clip(s (stretch_high - stretch_low) + stretch_low, 0, 1)

    and in evaluation it is deterministic, with `s = sigmoid(log_alpha)`. The
    expected number of open gates is
    `sum sigmoid(log_alpha - temperature log(-stretch_low / stretch_high))`
    (Louizos et al. 2018, arXiv:1712.01312, equations 10 to 13, which the
    AdapterBias paper's section 3.2.2 follows).

    At `log_alpha = 0` a gate is open with probability 0.83, while the
    deterministic gate is 0.5: only training closes it.

    Args:
        shape: Shape of the gated weights.
        temperature: Positive float. Defaults to 2/3.
        stretch_low: Negative float. Defaults to -0.1.
        stretch_high: Float above 1. Defaults to 1.1.
        learning_rate_multiplier: Positive float. The layer stores
            `log_alpha / multiplier`, so that an optimiser of Adam's kind moves
            `log_alpha` that much faster: at a learning rate of 1e-3 it would
            otherwise need 2,400 steps to close a gate.
        initial_log_alpha: Float. Defaults to 0.
    """

    # A logit that neither noise nor an optimiser's momentum leads back.
    CERTAIN = 1e3

    def __init__(
        self,
        shape,
        temperature=2 / 3,
        stretch_low=-0.1,
        stretch_high=1.1,
        learning_rate_multiplier=1.0,
        initial_log_alpha=0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if temperature <= 0 or stretch_low >= 0 or stretch_high <= 1:
            raise UserError(
                "Hard-concrete gates need temperature > 0, stretch_low < 0 and "
                f"stretch_high > 1. Received: temperature={temperature}, "
                f"stretch_low={stretch_low}, stretch_high={stretch_high}"
            )
        self.shape = tuple(shape)
        self.temperature = temperature
        self.stretch_low = stretch_low
        self.stretch_high = stretch_high
        self.learning_rate_multiplier = learning_rate_multiplier
        self.initial_log_alpha = initial_log_alpha

    def build(self, input_shape=None):
        initial = self.initial_log_alpha / self.learning_rate_multiplier
        self.scaled_log_alpha = self.add_weight(
            self.shape,
            keras.initializers.Constant(initial),
            name="scaled_log_alpha",
        )

    def fix(self, is_open):
        """Makes gates 1 or 0 for good, in training too.

        Args:
            is_open: Boolean, or an array of them of the layer's shape.
        """
        log_alpha = np.where(is_open, self.CERTAIN, -self.CERTAIN)
        self.scaled_log_alpha.assign(
            np.broadcast_to(log_alpha, self.shape)
            / self.learning_rate_multiplier
        )

    def reopen(self):
        """Lets gates train that a training left at 0 or 1.

        Those at 0 begin anew; those at 1 stay there, at a logit that training
        can move.
        """
        one = math.log((1 - self.stretch_low) / (self.stretch_high - 1))
        log_alpha = np.where(
            ops.convert_to_numpy(self.log_alpha) > 0,
            max(one, self.initial_log_alpha),
            self.initial_log_alpha,
        )
        self.scaled_log_alpha.assign(log_alpha / self.learning_rate_multiplier)

    @property
    def log_alpha(self):
        """Logits of the gates, of the layer's shape, in float32."""
        return (
            ops.convert_to_tensor(self.scaled_log_alpha, "float32")
            * self.learning_rate_multiplier
        )

    def call(self, seeds=None):
        """Returns the gates: drawn if `seeds` are given, else deterministic."""
        logits = self.log_alpha
        if seeds is not None:
            noise = keras.random.uniform(self.shape, 1e-6, 1 - 1e-6, seed=seeds)
            logits = (
                ops.log(noise) - ops.log(1 - noise) + logits
            ) / self.temperature
        stretched = (
            ops.sigmoid(logits) * (self.stretch_high - self.stretch_low)
            + self.stretch_low
        )
        return ops.clip(stretched, 0, 1)

    def expected_open(self):
        """Returns each gate's probability of not being exactly zero."""
        shift = self.temperature * math.log(
            -self.stretch_low / self.stretch_high
        )
        return ops.sigmoid(self.log_alpha - shift)
