"""Gates with a hard-concrete distribution, which can close exactly."""

from collections.abc import Sequence
import math
from typing import Any

import keras
from keras import ops
import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.common.types import Tensor
from tf_adapters.layers.float32_layer import Float32Layer


@keras.saving.register_keras_serializable("tf_adapters")
class HardConcreteGates(Float32Layer):
    """Holds a gate in `[0, 1]` for each weight, with exact zeros and ones.

    In training, a gate `z` is drawn. With `u` uniform in `(0, 1)`,

        s = sigmoid((log u - log(1 - u) + log_alpha) / temperature)
        z = clip(s (stretch_high - stretch_low) + stretch_low, 0, 1)

    In evaluation, the gate is deterministic, with `s = sigmoid(log_alpha)`. The
    expected number of open gates is
    `sum sigmoid(log_alpha - temperature log(-stretch_low / stretch_high))`
    (Louizos et al. 2018, arXiv:1712.01312, equations 10 to 13; used by the
    AdapterBias paper in section 3.2.2).

    With the default settings and `log_alpha = 0`, a gate is open with
    probability 0.83, and the deterministic gate is 0.5. Only training closes
    gates.

    Args:
        shape: Shape of the gated weights.
        temperature: Positive float. Defaults to 2/3.
        stretch_low: Negative float. Defaults to -0.1.
        stretch_high: Float greater than 1. Defaults to 1.1.
        learning_rate_multiplier: Positive float. The layer stores
            `log_alpha / multiplier`, so an optimizer like Adam changes
            `log_alpha` faster by this factor. With a learning rate of 1e-3 and
            a multiplier of 1 (default), Adam would need 2,400 steps to close a
            gate.
        initial_log_alpha: Float. Initial logit of all gates. Defaults to 0.
        **kwargs: See `keras.layers.Layer`.

    Raises:
        UserError: If the temperature, the stretch or the multiplier is out of
            its range.
    """

    # A logit so large that neither noise nor an optimizer's momentum can change
    # the gate.
    CERTAIN = 1e3

    def __init__(
        self,
        shape: Sequence[int],
        temperature: float = 2 / 3,
        stretch_low: float = -0.1,
        stretch_high: float = 1.1,
        learning_rate_multiplier: float = 1.0,
        initial_log_alpha: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if temperature <= 0 or stretch_low >= 0 or stretch_high <= 1:
            raise UserError(
                "Hard-concrete gates need temperature > 0, stretch_low < 0 and "
                f"stretch_high > 1. Received: temperature={temperature}, "
                f"stretch_low={stretch_low}, stretch_high={stretch_high}"
            )
        if learning_rate_multiplier <= 0:
            raise UserError(
                "`learning_rate_multiplier` of gates must be positive. "
                f"Received: {learning_rate_multiplier}"
            )
        self.shape = tuple(shape)
        self.temperature = temperature
        self.stretch_low = stretch_low
        self.stretch_high = stretch_high
        self.learning_rate_multiplier = learning_rate_multiplier
        self.initial_log_alpha = initial_log_alpha

    def build(self, input_shape: Sequence[Any] | None = None) -> None:
        initial = self.initial_log_alpha / self.learning_rate_multiplier
        self.scaled_log_alpha = self.add_weight(
            self.shape,
            keras.initializers.Constant(initial),
            name="scaled_log_alpha",
        )

    def fix(self, is_open: bool | np.ndarray) -> None:
        """Fixes the gates at 1 or 0, also for training.

        Args:
            is_open: Boolean, or a boolean array of the layer's shape.
        """
        log_alpha = np.where(is_open, self.CERTAIN, -self.CERTAIN)
        self.scaled_log_alpha.assign(
            np.broadcast_to(log_alpha, self.shape)
            / self.learning_rate_multiplier
        )

    def reopen(self) -> None:
        """Makes gates trainable again after an earlier training fixed them.

        Closed gates return to their initial logit. Open gates stay open, at a
        logit that is small enough for training to change it.
        """
        one = math.log((1 - self.stretch_low) / (self.stretch_high - 1))
        log_alpha = np.where(
            ops.convert_to_numpy(self.log_alpha) > 0,
            max(one, self.initial_log_alpha),
            self.initial_log_alpha,
        )
        self.scaled_log_alpha.assign(log_alpha / self.learning_rate_multiplier)

    @property
    def log_alpha(self) -> Tensor:
        """The float32 logits of the gates, of the layer's shape."""
        return (
            ops.convert_to_tensor(self.scaled_log_alpha, "float32")
            * self.learning_rate_multiplier
        )

    def call(self, seeds: keras.random.SeedGenerator | None = None) -> Tensor:
        """Returns the gates' values, a float32 tensor of the layer's shape.

        Args:
            seeds: Generator to draw the gates, such as `StatelessSeeds`. If
                `None` (default), they are deterministic.
        """
        logits = self.log_alpha
        if seeds is not None:
            noise = keras.random.uniform(
                self.shape, 1e-6, 1 - 1e-6, "float32", seed=seeds
            )
            logits = (
                ops.log(noise) - ops.log(1 - noise) + logits
            ) / self.temperature
        stretched = (
            ops.sigmoid(logits) * (self.stretch_high - self.stretch_low)
            + self.stretch_low
        )
        return ops.clip(stretched, 0, 1)

    def expected_open(self) -> Tensor:
        """Returns each gate's probability of not being exactly zero."""
        shift = self.temperature * math.log(
            -self.stretch_low / self.stretch_high
        )
        return ops.sigmoid(self.log_alpha - shift)
