"""Blocks that recompute their activations in the backward pass."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Collection
import copy
import dataclasses
from typing import TYPE_CHECKING
from typing import Any

import keras
from keras import ops

from tf_adapters.common.types import Tensor
from tf_adapters.layers.context import Context
from tf_adapters.layers.reparameterization import InnerScope

if TYPE_CHECKING:
    from tf_adapters.models.adapted_block import AdaptedBlock


def rematerialized(
    block: AdaptedBlock, differentiable: Collection[int]
) -> Callable[[Tensor, Context, bool], Tensor]:
    """Returns a function that runs a block without storing its activations.

    Only the block's inputs are stored. The backward pass computes the
    activations again. `keras.remat` computes gradients only for a function's
    arguments, so every weight that needs a gradient must be an argument.

    Args:
        block: `AdaptedBlock`.
        differentiable: Ids of the variables that need gradients. The block's
            other variables are constants.

    Returns:
        Function for training that takes the block's input, its `Context` and
        `first_token_only`, and returns the block's output.
    """

    def call(x: Tensor, context: Context, first_token_only: bool) -> Tensor:
        own = [v for v in block.variables if id(v) in differentiable]
        # Values, not variables: TensorFlow would compute a gradient for each
        # variable that is read inside, even if it is not needed.
        constants = [
            (v, _read(v))
            for v in block.variables
            if id(v) not in differentiable
        ]
        in_use: Any = context.seeds
        draws = 0 if in_use is None else in_use.draws

        def run(x: Tensor, *values: Tensor) -> Tensor:
            # The forward pass and the recomputation start at the same draw, so
            # they get the same dropout masks.
            seeds = copy.copy(in_use)
            if seeds is not None:
                seeds.draws = draws
            pairs = [*constants, *zip(own, values, strict=True)]
            with InnerScope(pairs):
                outputs, _ = block(
                    x,
                    context=dataclasses.replace(context, seeds=seeds),
                    first_token_only=first_token_only,
                    training=True,
                )
            if seeds is not None:
                run.draws = seeds.draws
            return outputs

        outputs = keras.remat(run)(x, *map(_read, own))
        if in_use is not None:
            in_use.draws = run.draws
        return outputs

    return call


def _read(variable: keras.Variable) -> Tensor:
    """Returns a variable's value as a tensor.

    `convert_to_tensor` would not read the variable.
    """
    return ops.reshape(variable, variable.shape)
