"""Signatures of a span model, which take token ids only.

Choosing a span among several windows and mapping it back to characters is done
in Python (`Span.decode`). Both signatures take the features that `Span.encode`
makes and return `start_logits` and `end_logits`, float32 `(batch, tokens)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tf_adapters.export import signature_inputs

if TYPE_CHECKING:
    from collections.abc import Sequence

    import tensorflow as tf

    from tf_adapters.common.types import Tensor
    from tf_adapters.data.tokens.packing import TextPacker
    from tf_adapters.models.adapter_model import AdapterModel

NO_TEXTS = (
    "An answer is mapped back to the characters of its text outside the graph"
)


def token_function(
    model: AdapterModel, packer: TextPacker
) -> tf.types.experimental.ConcreteFunction:
    """Returns a traced function from token ids to start and end logits."""
    return signature_inputs.token_function(
        model,
        lambda x: {"start_logits": x[..., 0], "end_logits": x[..., 1]},
    )


def warmup_inputs(
    packer: TextPacker, text_fields: Sequence[str]
) -> list[dict[str, Tensor]]:
    """Returns two dicts of features for warm-up: one window, and two windows.

    Of the two, one is short and the other is truncated.
    """
    questions = ["Who came?", "Who came?"]
    texts = ["It was he.", packer.too_long("It was he. ")]
    return [packer(questions[:count], texts[:count]) for count in (1, 2)]
