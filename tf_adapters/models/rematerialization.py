"""Blocks that recompute their activations in the backward pass."""

import copy
import dataclasses

import keras
from keras import ops

from tf_adapters.layers.reparameterization import InnerScope


def rematerialized(block, differentiable):
    """Returns a function that calls a block and stores only its inputs.

    `keras.remat` only computes gradients of a function's arguments, so every
    weight that needs a gradient must be an argument.

    Args:
        block: `AdaptedBlock`.
        differentiable: Ids of the variables that need gradients. The block's
            other variables are constants.

    Returns:
        Function for training that takes the block's input, its `Context` and
        `first_token_only`, and returns the block's output.
    """

    def call(x, context, first_token_only):
        own = [v for v in block.variables if id(v) in differentiable]
        # Values, not variables: TensorFlow would compute a gradient for each
        # variable that is read inside, even if it is not needed.
        constants = [
            (v, _read(v))
            for v in block.variables
            if id(v) not in differentiable
        ]
        draws = context.seeds.draws

        def run(x, *values):
            # Both passes start at the same draw, so they get the same masks.
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
