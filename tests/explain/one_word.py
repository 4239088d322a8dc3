"""A text model that reads one word, with weights set by hand.

All vectors are rows of a Hadamard matrix: entries of 1 and -1 with a mean of
0, orthogonal to each other. Layer norm leaves such a vector as it is, and
divides a sum `x + r y` of two of them by the root of `1 + r^2`.

The first block's attention is uniform, and its values are `STRENGTH` times the
pattern `MARK` for the word "fine" and 0 for all others. So the first token's
vector becomes `CLS + r MARK`, normalized, with `r` = `STRENGTH` / tokens. The
head's logit of "positive" is `SCALE` times the share of `MARK`. The second
block's adapter adds `MOVE` times the pattern `AWAY` to all tokens.
"""

import keras
import keras_hub
import numpy as np
import scipy.linalg

from tests import tiny
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.text.text_model import TextModel

STRENGTH, SCALE, MOVE = 4.0, 3.0, 0.5
VOCABULARY = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "fine", "film")
VOCABULARY += ("##s",)  # Without a piece, words have no ends.
# The first row of the matrix is constant, so its mean is not 0.
PATTERNS = scipy.linalg.hadamard(tiny.WIDTH)[1:].astype("float32")
MARK, AWAY = PATTERNS[len(VOCABULARY)], PATTERNS[len(VOCABULARY) + 1]


def score(num_tokens, has_word=True, is_moved=True):
    """Returns the log-odds of "positive", by hand."""
    r = STRENGTH / num_tokens if has_word else 0.0
    share = r / np.sqrt(1 + r**2)
    return SCALE * share / (np.sqrt(1 + MOVE**2) if is_moved else 1)


def _encoder():
    encoder = tiny.encoder()
    for weight in encoder.backbone.weights:
        weight.assign(np.full(weight.shape, float(weight.name == "gamma")))
    table = np.zeros((tiny.VOCABULARY, tiny.WIDTH), "float32")
    table[: len(VOCABULARY)] = PATTERNS[: len(VOCABULARY)]
    encoder.backbone.token_embedding.embeddings.assign(table)
    first = encoder.architecture.blocks(encoder.backbone)[0]
    layers = encoder.architecture.layers(first)
    fine = PATTERNS[VOCABULARY.index("fine")]
    values = STRENGTH / tiny.WIDTH * np.outer(fine, MARK)
    for layer, kernel in (
        (layers.value, values),
        (layers.output, np.eye(tiny.WIDTH)),
    ):
        layer.kernel.assign(kernel.reshape(layer.kernel.shape))
    return encoder


def text_model():
    """Returns the model, with Pfeiffer's adapter and a linear head."""
    tokenizer = keras_hub.models.BertTokenizer(vocabulary=list(VOCABULARY))
    head = heads.Classification(("negative", "positive"))
    model = TextModel(_encoder(), tokenizer, methods.Pfeiffer(), head=head)
    adapter = model.adapter_model
    for block in range(tiny.BLOCKS):
        weights = adapter.slot_weights(block, "after_ffn")
        for weight in weights.values():
            weight.assign(keras.ops.zeros(weight.shape))
        weights["delta/up_bias"].assign(block * MOVE * AWAY)
    kernel = np.stack([0 * MARK, SCALE / tiny.WIDTH * MARK], axis=-1)
    adapter.head_layer.kernel.assign(kernel)
    adapter.head_layer.bias.assign([0.0, 0.0])
    return model
