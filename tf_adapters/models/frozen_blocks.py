"""Finds the first blocks of a model that always compute the same.

What they compute for a text can be kept, and later passes can start behind
them: an `AdaptedEncoder` starts at the block that an input names.
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
    """Returns the name of the input with the outputs of the first blocks.

    It is `hidden_states[blocks]` in the outputs of an `AdaptedEncoder`.

    Args:
        blocks: Integer, the number of blocks that computed it.
    """
    return f"{_NAME}{blocks}"


def given_state(inputs: dict[str, Tensor]) -> tuple[int, Tensor | None]:
    """Returns the number of blocks to leave out, and what they computed.

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
    """Returns the number of first blocks whose output for a text never changes.

    These blocks hold nothing that trains and no slot, and neither do the
    embeddings. In training their dropout must also be off.

    Args:
        model: `AdapterModel`.
        trained: The variables that train.
        training: Whether the passes are in training mode.

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
    # The pooler and the final norm are behind the blocks.
    behind = {id(v) for v in encoder.pooler_variables()}
    if encoder.final_norm is not None:
        behind |= {id(v) for v in encoder.final_norm.variables}
    embeddings = {id(v) for v in encoder.backbone.weights} - in_blocks - behind
    if embeddings & changing:
        return 0
    flags = [_is_frozen(b, changing, training) for b in encoder.blocks]
    frozen = len(list(itertools.takewhile(bool, flags)))
    # Behind a final norm no block could start.
    most = len(flags) - (encoder.final_norm is not None)
    return min(frozen, most)


def frozen_output(
    encoder: AdaptedEncoder, inputs: dict[str, Tensor], blocks: int
) -> Tensor:
    """Returns what the first blocks compute in evaluation.

    Args:
        encoder: `AdaptedEncoder`.
        inputs: See `AdaptedEncoder`.
        blocks: Integer, the number of blocks.

    Returns:
        `(batch, tokens, width)`, `hidden_states[blocks]` of the encoder.
    """
    # In a graph, the blocks behind it are never computed.
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
