"""What an `AdaptedEncoder` refuses, in a sentence each."""

import keras

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut


def check_inputs(encoder, inputs):
    """Raises a `UserError` unless `inputs` are what a call takes.

    Lengths are compared where they are known: not in a graph of any length.
    """
    if not isinstance(inputs, dict):
        raise _no_features(f"{type(inputs).__name__}, {shown(inputs)}")
    for name, value in inputs.items():
        if isinstance(value, list | tuple):
            raise UserError(
                f"Expected arrays or tensors. Received: `{name}`, a "
                f"{type(value).__name__}. Make it `np.array({name})`."
            )
        if is_text(value.dtype):
            raise _no_features(f"texts as `{name}`")
    names = [tensor.name for tensor in encoder.embeddings.inputs]
    missing = [name for name in names if name not in inputs]
    if missing:
        raise UserError(
            f"The inputs lack {', '.join(f'`{n}`' for n in missing)}. "
            f"Expected: {', '.join(names)}, each of shape (batch, tokens). "
            f"Received: {cut(', '.join(inputs))}. `tf_adapters.TextPacker("
            "tokenizer, max_length, encoder.takes_segments)` makes them all."
        )
    tokens = inputs["token_ids"].shape[-1]
    longest = encoder.max_tokens
    if None not in (tokens, longest) and tokens > longest:
        raise UserError(
            f"The texts have {tokens} tokens, padding included, but the "
            f"encoder has positions for {longest}. Cut them: "
            f"`tf_adapters.TextPacker(tokenizer, max_length={longest})`."
        )


def _no_features(received):
    return UserError(
        "Expected a dict of token features, as `tf_adapters.TextPacker("
        f"tokenizer, max_length=...)(texts)` makes it. Received: {received}"
    )


def shown(value):
    """Returns the beginning of a value as an error shows it, in one line."""
    return " ".join(repr(value).split())[:100]


def is_text(dtype):
    """Returns whether a type of arrays or tensors is one of texts."""
    try:
        return keras.backend.standardize_dtype(dtype) == "string"
    except ValueError:
        # NumPy's: Keras has no name for them.
        return True


def check_not_quantized(backbone):
    """Raises a `UserError` if kernels are integers, which would be misread."""
    for variable in backbone.weights:
        if "int" in keras.backend.standardize_dtype(variable.dtype):
            raise UserError(
                f"The encoder is quantised: `{variable.path}` has type "
                f"{variable.dtype}. Adapters read its weights as floats: "
                "load the encoder anew, without `quantize`."
            )
