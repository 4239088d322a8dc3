"""What a block tells its slots."""

from collections.abc import Callable
import dataclasses
from typing import Any

from tf_adapters.layers.stateless_seeds import StatelessSeeds


@dataclasses.dataclass(frozen=True)
class Context:
    """What a block tells its slots, besides the sublayer's output.

    One opaque object rather than a dict, because Keras refuses nested call
    arguments that mix tensors with anything else.

    Attributes:
        padding_mask: `(batch, tokens)`, 1 at tokens and 0 at padding.
        adapter_ids: `(batch,)` integers, or `None`: which adapter of a bank
            each example uses.
        seeds: `StatelessSeeds` in training, else `None`.
        block_input: `(batch, tokens, width)`. Input of the block.
        residual: `(batch, tokens, width)`. Input of the sublayer.
        intermediate: `(batch, tokens, ffn_width)`. Activation of the
            feed-forward network; `None` after attention.
        norm: Function that applies the layer norm of the sublayer.
        sublayer_output: `(batch, tokens, width)`. Behind the norm: what was
            added to `residual` before it.

    Examples:
        >>> from tf_adapters.layers.context import Context
        >>> Context(padding_mask=features["padding_mask"]).norm is None
        True
    """

    padding_mask: Any
    adapter_ids: Any = None
    seeds: StatelessSeeds | None = None
    block_input: Any = None
    residual: Any = None
    intermediate: Any = None
    norm: Callable | None = None
    sublayer_output: Any = None
