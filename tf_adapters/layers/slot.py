"""The base class of the layers that methods attach to an encoder."""

import re
import typing
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.errors import UserError
from tf_adapters.layers.float32_layer import Float32Layer

if TYPE_CHECKING:
    from tf_adapters.layers.banks.bank_layer import Part

# The places of a block. The projections are attention's query, key, value and
# output, and the two of the feed-forward network.
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
    """A layer that is attached at one or more places of an encoder.

    Its arguments and return values depend on the place:

    - `after_attention`, `after_ffn`: `slot(x, context, training)`, where `x` is
      the sublayer's output after its dropout, `(batch, tokens, width)`. Returns
      `x'` of the same shape and a dict of probes. The block continues with
      `norm(x' + context.residual)`; a pre-norm block with the sum itself.
    - `after_attention_norm`, `after_ffn_norm`: the same, but `x` is the output
      of that norm, and `context.sublayer_output` is the sublayer's output
      before it. Pre-norm blocks have no such place.
    - a projection, from `query` to `ffn_down`:
      `slot(x, project=..., context, training)`, where `x` is the projection's
      input, and `project` is the function that computes the projection,
      including the bias but not the feed-forward network's activation. Returns
      the new output of the projection.
    - `keys_and_values`: `slot(keys, values=..., context, training)`, where both
      have shape `(batch, tokens, width)`. Returns keys, values and padding
      mask, which may be longer.
    - `word_embeddings`: `slot(x, context, training)`, where `x` has only the
      word embeddings, before positions, segments and norm. Returns `x'` and
      probes.
    - `embeddings`: the same, but `x` is the input of the first block.

    At the last two places, `x'` may have `num_added_tokens` more vectors than
    `x`, to which all tokens attend. The first of them is at index
    `first_added_token`.

    The method must name all layers that have weights, because these names
    identify the weights in adapter folders. The name of a block's slot contains
    the number of the block.

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
    # Whether `x` must have all tokens, even if only the first token of the
    # block's output is used.
    needs_all_tokens = False
    # Method that inverts a call, or `None`. It maps `(..., width)` to the same
    # shape. Used only at the place `embeddings`.
    inverse = None
    # Whether the slot is folded into a kernel, so that the block skips it.
    # `Reparameterization` sets it.
    is_folded = False

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.has_own_name = kwargs.get("name") is not None

    def bank_parts(self) -> "list[Part]":
        """Returns the slot's weights in the form in which a bank stores them.

        A bank holds many adapters of one encoder; see
        `tf_adapters.layers.banks`. The result is a list of `Part`s, each with
        the weights for one layer of the bank. Slots of subclasses that do not
        override this method cannot be used in a bank.

        Raises:
            UserError: If a bank cannot hold the slot. The message is the
                reason.
        """
        raise UserError(
            f"The class {type(self).__name__} does not define `bank_parts`, "
            "the form of its weights in a bank."
        )

    @property
    def is_merged(self) -> bool:
        """The earlier name of `is_folded`."""
        return self.is_folded


def check_names(slot: Slot) -> None:
    """Checks that all layers of a slot that have weights are named explicitly.

    Names that Keras generates differ each time, so an adapter folder with them
    could not be loaded.

    Args:
        slot: Built `Slot`.

    Raises:
        UserError: If Keras generated the name of a layer with weights.
    """
    for layer in slot._flatten_layers():
        made_up = type(layer).__name__.lower().replace("_", "")
        name = re.sub(r"_\d+$", "", layer.name)
        # A nested layer's generated name is recognizable only by its number,
        # which the first layer of a class does not have.
        unnamed = not slot.has_own_name if layer is slot else name != layer.name
        if layer.weights and unnamed and name.replace("_", "") == made_up:
            raise UserError(
                f"A layer of the class {type(layer).__name__} was made without "
                f"a name: Keras generated `{layer.name}`, which differs each "
                "time, so saved weights could not be loaded. Name each layer "
                "in a slot, and put the block's number in the slot's own "
                "name, as in name=f'block_{i}_after_ffn'."
            )
