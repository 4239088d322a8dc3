"""Ends a training command after its first step, to time how it starts."""

import os

import keras


class EndsProcess(keras.callbacks.Callback):
    """Ends the process at once when the first step has been computed."""

    def on_train_batch_end(self, batch, logs=None):
        # Without the work of the interpreter at its end.
        os._exit(0)
