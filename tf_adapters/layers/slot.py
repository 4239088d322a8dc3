"""What a method puts into a place of the encoder."""

import re
import typing

from tf_adapters.common.errors import UserError
from tf_adapters.layers.float32_layer import Float32Layer

# A block's places, in the order in which it calls them. The projections are
# attention's query, key, value and output, and the two of the feed-forward
# network.
Projection = typing.Literal[
    "query", "key", "value", "output", "ffn_up", "ffn_down"
]
PROJECTIONS = typing.get_args(Projection)
BLOCK_PLACES = (
    *PROJECTIONS,
    "keys_and_values",
    "after_attention",
    "after_attention_norm",
    "after_ffn",
    "after_ffn_norm",
)
EMBEDDING_PLACES = ("word_embeddings", "embeddings")


class Slot(Float32Layer):
    """A layer in one place of the encoder, or in several.

    What it is called with, and what it returns, depends on the place:

    - `after_attention`, `after_ffn`: `slot(x, context, training)` with `x`
      `(batch, tokens, width)`, the sublayer's output after its dropout; returns
      `x'` of this shape and a dict of probes. The block goes on with
      `norm(x' + context.residual)`.
    - `after_attention_norm`, `after_ffn_norm`: the same, with `x` the result
      of that norm, and `context.sublayer_output` what was normed.
    - a projection, `query` to `ffn_down`:
      `slot(x, project=..., context, training)` with `x` what the projection
      reads and `project` the function that computes it, bias included, without
      the feed-forward network's activation; returns its value.
    - `keys_and_values`: `slot(keys, values=..., context, training)`, both
      `(batch, tokens, width)`; returns keys, values and padding mask, which may
      be longer.
    - `word_embeddings`: `slot(x, context, training)` with `x` the vectors of
      the word pieces alone, before positions, segments and norm; returns `x'`
      and probes.
    - `embeddings`: the same, with `x` what the first block would read.

    In the last two places `x'` may be longer, by `num_added_tokens` vectors
    that all tokens attend to, the first of them at `first_added_token`.

    Layers that hold weights are named by the method, with the block's number in
    the name of the slot: the names are those in adapter folders.

    Examples:
        >>> from tf_adapters.layers.slot import Slot
        >>> class Halve(Slot):
        ...     def call(self, x, context, training=None):
        ...         return 0.5 * x, {}
        >>> output, probes = Halve()(np.ones((2, 7, 16)), context=None)
        >>> float(output[0, 0, 0])
        0.5
    """

    num_added_tokens = 0
    first_added_token = 0
    # Whether `x` must have all tokens, even where the first one is all that is
    # read of the block.
    needs_all_tokens = False
    # Method that undoes a call, where there is one: from `(..., width)` to the
    # same shape. Behind the embeddings only.
    inverse = None
    # Whether a kernel holds what the slot computes, so that the block leaves
    # the slot out. `Reparameterization` sets it.
    is_merged = False

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.has_own_name = kwargs.get("name") is not None


def check_names(slot):
    """Raises a `UserError` if Keras made up the name of a layer with weights.

    It would be another one each time, and the folder could not be loaded.
    """
    for layer in slot._flatten_layers():
        made_up = type(layer).__name__.lower().replace("_", "")
        name = re.sub(r"_\d+$", "", layer.name)
        # Of a layer within, only a second one's name tells.
        tells = not slot.has_own_name if layer is slot else name != layer.name
        if layer.weights and tells and name.replace("_", "") == made_up:
            raise UserError(
                f"A layer of the class {type(layer).__name__} has no name of "
                f"its own: Keras made up `{layer.name}`, which is another one "
                "each time, so that no folder could be loaded. Give a slot "
                "the number of its block, as in name=f'block_{i}_after_ffn', "
                "and a layer in it a name."
            )
