"""Converts a text packer to an equivalent packer for TensorFlow graphs."""

from tf_adapters.data.tokens.packing import TextPacker


def in_graph(packer: TextPacker) -> TextPacker | None:
    """Returns an equivalent packer that works in a TensorFlow graph.

    Returns `None` if the tokenizer cannot be converted.

    Args:
        packer: `TextPacker`.
    """
    if not hasattr(packer.tokenizer, "in_graph"):
        return packer
    tokenizer = packer.tokenizer.in_graph()
    if tokenizer is None:
        return None
    graph_packer = TextPacker(tokenizer, packer.max_length)
    # The tokenizer's class implies the usual special tokens; the original
    # packer may use others.
    graph_packer.special_tokens = packer.special_tokens
    return graph_packer
