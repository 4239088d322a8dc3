"""Blocks that compute their activations again for the gradient."""

import copy
import dataclasses

import keras
from keras import ops

from tf_adapters.layers.reparameterization import InnerScope


def rematerialized(block, differentiable):
    """Returns a function that calls a block and keeps nothing but its inputs.

    `keras.remat` knows the gradients of a function's arguments only, so that
    every weight with a gradient has to be one.

    Args:
        block: `AdaptedBlock`.
        differentiable: Ids of the variables that have gradients; others of the
            block are constants.

    Returns:
        Function of the block's input and its `Context`, for training, that
        returns the block's output.
    """

    def call(x, context, first_token_only):
        own = [v for v in block.variables if id(v) in differentiable]
        # Values, not variables: TensorFlow would compute a gradient for each
        # variable that is read within, though nobody asks for it.
        constants = [
            (v, _read(v))
            for v in block.variables
            if id(v) not in differentiable
        ]
        draws = context.seeds.draws

        def run(x, *values):
            # Each pass draws from the same place on, and so the same masks.
            seeds = copy.copy(context.seeds)
            seeds.draws = draws
            pairs = [*constants, *zip(own, values, strict=True)]
            with InnerScope(pairs):
                outputs, _ = block(
                    x,
                    context=dataclasses.replace(context, seeds=seeds),
                    first_token_only=first_token_only,
                    training=True,
                )
            run.draws = seeds.draws
            return outputs

        outputs = keras.remat(run)(x, *map(_read, own))
        context.seeds.draws = run.draws
        return outputs

    return call


def _read(variable):
    """Returns a variable's value; `convert_to_tensor` returns the variable."""
    return ops.reshape(variable, variable.shape)
