"""Signatures of a model that reads a long text in windows.

Inputs and outputs are those of `text_signatures`, but a row always has one
text, not a pair. `serving_default` splits the text into windows. `token_ids`
takes tensors `(batch, windows, tokens)` and ignores windows without tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.data.tokens.windows import Windows
from tf_adapters.export import signature_inputs
from tf_adapters.export import text_signatures

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import tensorflow as tf

    from tf_adapters.common.types import Tensor
    from tf_adapters.data.tokens.packing import TextPacker
    from tf_adapters.models.adapter_model import AdapterModel


def text_function(
    model: AdapterModel, packer: TextPacker, text_fields: Sequence[str]
) -> tf.types.experimental.ConcreteFunction:
    """Returns the traced function of the signature `serving_default`.

    It maps texts to a dict with the predicted classes or scores.
    """
    head: Any = model.head

    def from_texts(*texts: Tensor) -> dict[str, Tensor]:
        outputs = model(head.pack(packer, *texts), training=False)
        return text_signatures.answer(head, outputs)

    names = signature_inputs.input_names(text_fields)
    return signature_inputs.text_function(from_texts, names)


def token_function(
    model: AdapterModel, packer: TextPacker
) -> tf.types.experimental.ConcreteFunction:
    """Returns the traced function of the signature `token_ids`.

    It maps token ids to a dict with the predicted classes or scores.
    """
    return signature_inputs.token_function(
        model, lambda x: text_signatures.answer(model.head, x), rank=3
    )


def warmup_inputs(
    packer: TextPacker, text_fields: Sequence[str]
) -> list[dict[str, Any]]:
    """Returns two batches for warm-up: one text, and three texts.

    A batch is a dict from input name to value. Of the three texts, one is
    empty, one is short and one fills two windows.
    """
    texts = ["", "A short text.", packer.too_long("A longer text, in two. ")]
    (name,) = signature_inputs.input_names(text_fields)
    return [
        {**packer.pack_windows(batch, Windows(2)), name: batch}
        for batch in (texts[1:2], texts)
    ]
