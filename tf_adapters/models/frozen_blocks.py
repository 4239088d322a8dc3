"""Finds the first blocks of a model whose output for a text never changes.

The output of these blocks can be stored and given to an `AdaptedEncoder`, which
then skips the blocks. The name of the input is `hidden_state_<n>`, where `n` is
the number of blocks to skip.
"""

from __future__ import annotations

from collections.abc import Iterable
import itertools
from typing import TYPE_CHECKING

from tf_adapters.common.types import Tensor

if TYPE_CHECKING:
    import keras

    from tf_adapters.models.adapted_block import AdaptedBlock
    from tf_adapters.models.adapted_encoder import AdaptedEncoder
    from tf_adapters.models.assembled_model import AssembledModel

_NAME = "hidden_state_"


def input_name(blocks: int) -> str:
    """Returns the name of the input that replaces the first blocks.

    Its value is the stored output of these blocks: `hidden_states[blocks]` in
    the outputs of an `AdaptedEncoder`.

    Args:
        blocks: Integer. Number of blocks to skip.
    """
    return f"{_NAME}{blocks}"


def given_state(inputs: dict[str, Tensor]) -> tuple[int, Tensor | None]:
    """Returns the number of blocks to skip, and their stored output.

    Args:
        inputs: Inputs of an `AdaptedEncoder`.

    Returns:
        Integer and `(batch, tokens, width)`; or 0 and `None` if the inputs have
        no `hidden_state_<n>`.
    """
    for name, value in inputs.items():
        if name.startswith(_NAME):
            return int(name.removeprefix(_NAME)), value
    return 0, None


def num_frozen_blocks(
    model: AssembledModel,
    trained: Iterable[keras.Variable],
    training: bool,
) -> int:
    """Counts the first blocks of a model whose output for a text never changes.

    Neither these blocks nor the embeddings may have trained variables or slots.
    In training mode, their dropout must also be off.

    Args:
        model: `AdapterModel`.
        trained: The variables that train.
        training: Whether the forward passes are in training mode.

    Returns:
        Integer from 0 to the number of blocks.
    """
    encoder = model.encoder
    changing = {id(v) for v in (*trained, *model.reparameterization.computed())}
    if encoder.embedding_slots or encoder.position_offset:
        return 0
    if training and encoder.hidden_dropout:
        return 0
    in_blocks = {id(v) for b in encoder.blocks for v in b.variables}
    # The pooler and the final norm come after the blocks.
    behind = {id(v) for v in encoder.pooler_variables()}
    if encoder.final_norm is not None:
        behind |= {id(v) for v in encoder.final_norm.variables}
    embeddings = {id(v) for v in encoder.backbone.weights} - in_blocks - behind
    if embeddings & changing:
        return 0
    flags = [_is_frozen(b, changing, training) for b in encoder.blocks]
    frozen = len(list(itertools.takewhile(bool, flags)))
    # The last hidden state includes the final norm, so a forward pass cannot
    # start from it.
    most = len(flags) - (encoder.final_norm is not None)
    return min(frozen, most)


def frozen_output(
    encoder: AdaptedEncoder, inputs: dict[str, Tensor], blocks: int
) -> Tensor:
    """Returns the output of the first blocks, computed in evaluation mode.

    Args:
        encoder: `AdaptedEncoder`.
        inputs: See `AdaptedEncoder`.
        blocks: Integer, the number of blocks.

    Returns:
        `(batch, tokens, width)`, `hidden_states[blocks]` of the encoder.
    """
    # In a graph, later blocks are never computed.
    outputs = encoder(inputs, training=False, return_hidden_states=True)
    return outputs["hidden_states"][blocks]


def _is_frozen(block: AdaptedBlock, changing: set[int], training: bool) -> bool:
    has_dropout = (
        block.hidden_dropout
        or block.attention_dropout
        or block.attention_output_dropout
        or block.ffn_output_dropout
    )
    return not (
        block.places_in_use
        or any(id(variable) in changing for variable in block.variables)
        or (training and has_dropout)
    )
