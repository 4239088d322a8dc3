"""Signatures of a span: token ids only.

A span is found among several windows and mapped back to characters, which is
done in Python (`Span.decode`). Both signatures take what `Span.encode` makes
and answer `start_logits` and `end_logits`, float32 `(batch, tokens)`.
"""

from tf_adapters.export import signature_inputs

NO_TEXTS = (
    "An answer is mapped back to the characters of its text outside the graph"
)


def token_function(model, packer):
    """Returns the traced function from token ids to logits."""
    return signature_inputs.token_function(
        model,
        lambda x: {"start_logits": x[..., 0], "end_logits": x[..., 1]},
    )


def warmup_inputs(packer, text_fields):
    """Returns inputs of one window and of several, short and long."""
    questions = ["Who came?", "Who came?"]
    texts = ["It was he.", packer.too_long("It was he. ")]
    return [packer(questions[:count], texts[:count]) for count in (1, 2)]
