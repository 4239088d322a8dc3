"""Signatures of a head that reads a long text in windows.

They are those of `text_signatures`, with one text. `serving_default` cuts it
into windows itself; `token_ids` takes tensors `(batch, windows, tokens)`, and a
window without a token does not count.
"""

from tf_adapters.data.tokens.windows import Windows
from tf_adapters.export import signature_inputs
from tf_adapters.export import text_signatures


def text_function(model, packer, text_fields):
    """Returns the traced function from texts to an answer."""

    def from_texts(*texts):
        features = model.head.pack(packer, *texts)
        outputs = model(features, training=False)
        return text_signatures.answer(model.head, outputs)

    names = signature_inputs.input_names(text_fields)
    return signature_inputs.text_function(from_texts, names)


def token_function(model, packer):
    """Returns the traced function from token ids to an answer."""
    return signature_inputs.token_function(
        model, lambda x: text_signatures.answer(model.head, x), rank=3
    )


def warmup_inputs(packer, text_fields):
    """Returns inputs of one text and of several, short and of two windows."""
    texts = ["", "A short text.", packer.too_long("A longer text, in two. ")]
    (name,) = signature_inputs.input_names(text_fields)
    return [
        {**packer.pack_windows(batch, Windows(2)), name: batch}
        for batch in (texts[1:2], texts)
    ]
