"""An encoder for several runs that start as if each had loaded its own."""

import random
from typing import Any

import keras
import numpy as np

from tf_adapters.encoders.load import load_encoder


class SeededEncoder:
    """An encoder, and the random numbers that follow its loading.

    A run draws its first weights after it has loaded the encoder, which draws
    random numbers, too. Models made here have the weights of such a run.

    Args:
        name: See `load_encoder`.
        precision: Keras dtype policy.
        quantize: See `load_encoder`.
    """

    def __init__(self, name: str, precision: str, quantize: Any) -> None:
        self._arguments = (name, precision, True, quantize)
        self._states: dict[int, Any] = {}
        self._encoder: Any = None
        self.tokenizer: Any = None

    def free(self) -> None:
        """Frees the weights: a device may lack the memory for two encoders."""
        self._encoder = None

    def of(self, seed: int) -> Any:
        """Returns the `Encoder`, with random numbers as after its loading."""
        # Also removes Keras's global generator, which a run has to make.
        keras.utils.set_random_seed(seed)
        if seed not in self._states or self._encoder is None:
            encoder, tokenizer = load_encoder(*self._arguments)
            if self._encoder is None:
                self._encoder, self.tokenizer = encoder, tokenizer
            self._states[seed] = random.getstate(), np.random.get_state()
        random.setstate(self._states[seed][0])
        np.random.set_state(self._states[seed][1])
        return self._encoder
