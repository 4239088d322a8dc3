"""The inputs that a block passes to its slots."""

from collections.abc import Callable
import dataclasses
from typing import Any

from tf_adapters.common.types import Tensor
from tf_adapters.layers.banks.rows import gather
from tf_adapters.layers.stateless_seeds import StatelessSeeds


@dataclasses.dataclass(frozen=True)
class Context:
    """The inputs that a block passes to its slots, besides `x`.

    This is an opaque object rather than a dict, because Keras does not accept
    nested call arguments that mix tensors with other types.

    Attributes:
        padding_mask: `(batch, tokens)`, 1 at tokens and 0 at padding.
        adapter_rows: `(batch, columns)` integers, the rows of each example's
            adapter in the layers of a bank; see `layers.banks`. `None` if the
            encoder is not in a bank.
        seeds: `StatelessSeeds` in training, else `None`.
        block_input: `(batch, tokens, width)`. Input of the block.
        residual: `(batch, tokens, width)`. Input of the sublayer.
        intermediate: `(batch, tokens, ffn_width)`. Activation of the
            feed-forward network; `None` after attention.
        norm: Function `norm(x, adapter_rows)` that applies the layer norm after
            the sublayer. `None` in pre-norm blocks, which have none there.
        sublayer_output: `(batch, tokens, width)`. For slots after the norm: the
            sublayer's output, which was added to `residual` before the norm.

    Examples:
        >>> from tf_adapters.layers.context import Context
        >>> Context(padding_mask=features["padding_mask"]).norm is None
        True
    """

    padding_mask: Any
    adapter_rows: Any = None
    seeds: StatelessSeeds | None = None
    block_input: Any = None
    residual: Any = None
    intermediate: Any = None
    norm: Callable[[Any, Any], Any] | None = None
    sublayer_output: Any = None

    def of_examples(self, indices: Tensor) -> "Context":
        """Returns the context of some of the examples, for inference.

        All tensors are copied. In a graph, TensorFlow removes the copies that
        are not read.

        Args:
            indices: `(examples,)` integers, the examples' positions in the
                batch.
        """
        tensors = {
            name: gather(value, indices)
            for name, value in vars(self).items()
            if value is not None and name not in ("norm", "seeds")
        }
        return dataclasses.replace(self, **tensors)
