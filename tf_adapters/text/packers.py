"""The packer of a text model."""

from tf_adapters.common.errors import UserError
from tf_adapters.common.extras import has_tensorflow_text
from tf_adapters.data.tokens.python_packing import PythonPacker


def make_packer(tokenizer, model, preprocessor, max_length):
    """Returns what turns texts into token features, or `None`.

    Args:
        tokenizer: Tokenizer from `load_encoder`, or `None`.
        model: `AdapterModel`.
        preprocessor: `"auto"`, `None`, or a packer.
        max_length: Longest input; the encoder's own limit counts if it is less.

    Raises:
        UserError: If there is no tokenizer to pack with.
    """
    if preprocessor != "auto":
        return preprocessor
    if tokenizer is None:
        raise UserError(
            "A text model packs texts with the encoder's tokenizer: "
            "`encoder, tokenizer = tf_adapters.load_encoder(...)`. Pass it as "
            "`tokenizer`, or `preprocessor=None` to train on token features."
        )
    length = min(max_length, model.encoder.max_tokens or max_length)
    return packer_of(tokenizer, length, model.encoder_info.takes_segments)


def packer_of(tokenizer, max_length, takes_segments):
    """Returns a packer: TensorFlow Text's if that is installed."""
    make = PythonPacker
    if has_tensorflow_text():
        from tf_adapters.data.tokens.packing import TextPacker as make
    return make(tokenizer, max_length, takes_segments)
