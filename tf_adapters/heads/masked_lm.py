"""The hidden tokens of a text: masked language modelling."""

import dataclasses
from typing import ClassVar

import keras
from keras import ops
import numpy as np

from tf_adapters.data.encoded import IGNORED
from tf_adapters.data.encoded import Masking
from tf_adapters.data.encoded import encode_texts
from tf_adapters.layers import activations
from tf_adapters.layers.dense import dense
from tf_adapters.layers.normalization import layer_norm


@dataclasses.dataclass(frozen=True)
class MaskedLM:
    """BERT's head over the vocabulary, its last matrix the token embedding.

    Dense, activation, layer norm, then the product with the encoder's own token
    embedding and a bias (Devlin et al. 2019; google-research/bert,
    run_pretraining.py, `get_masked_lm_output`).

    Attributes:
        vocabulary_size: Number of tokens.
        embedding_width: Width of the token embedding.
        activation: Name in `tf_adapters.layers.activations`.
        layer_norm_epsilon: Epsilon of the norm.
        mask_share: Share of a text's tokens that are hidden; at least one.
        whole_words: Whether whole words are hidden (Google's later BERT).
        seed: Integer. Decides which tokens are hidden.
    """

    vocabulary_size: int
    embedding_width: int
    activation: str = "gelu"
    layer_norm_epsilon: float = 1e-12
    mask_share: float = 0.15
    whole_words: bool = False
    seed: int = 0
    reads: ClassVar[str] = "sequence_output"

    @classmethod
    def of(cls, encoder, **options):
        """Returns the head that fits an `Encoder`.

        Args:
            encoder: `Encoder`, see `load_encoder`.
            **options: Other attributes.
        """
        table = encoder.backbone.token_embedding.embeddings
        return cls(
            *map(int, table.shape),
            activation=encoder.activation,
            layer_norm_epsilon=encoder.layer_norm_epsilon,
            **options,
        )

    def make_layer(self):
        """Returns the layer, see `MaskedLMHead`."""
        return MaskedLMHead(
            self.vocabulary_size,
            self.embedding_width,
            self.activation,
            self.layer_norm_epsilon,
            name="head",
        )

    def encode(self, rows, fields, packer, labelled=True):
        """Returns an example for each row; its labels are not looked at."""
        encoded = encode_texts(rows, fields, packer)
        special = packer.special_ids
        if packer.mask_id is None:
            raise ValueError(
                "The encoder's tokenizer has no token that hides others, so "
                "there is no masked language modelling with it."
            )
        counts = [self._count(ids, special) for ids in encoded.token_ids]
        masking = Masking(
            packer.mask_id,
            tuple(special),
            self.vocabulary_size,
            packer.continues_word() if self.whole_words else None,
            self.seed,
        )
        return dataclasses.replace(
            encoded, counts=np.array(counts, "int32"), masking=masking
        )

    def _count(self, ids, special):
        """Returns how many tokens of a text are hidden; at least one of any."""
        inside = np.count_nonzero(np.isin(ids, special, invert=True))
        return min(inside, max(1, round(self.mask_share * inside)))

    def loss(self, targets, outputs):
        """Returns the sum of the hidden tokens' cross-entropies, `(batch,)`."""
        there = targets != IGNORED
        return -ops.sum(ops.where(there, outputs[..., 0], 0.0), axis=-1)

    def evaluate(self, names, outputs, targets, source):
        """Returns means over all hidden tokens of a set.

        `log_likelihood` is the negative of the loss, in nats a token, and
        `masked_accuracy` the share whose most likely token is the right one.
        """
        values = np.concatenate(outputs)
        values = values[values[:, 1] != IGNORED]
        found = {
            "log_likelihood": float(values[:, 0].mean()),
            "masked_accuracy": float(values[:, 1].mean()),
        }
        return {name: found[name] for name in names}

    def decode(self, outputs, source):
        """Returns the mean log-likelihood of each text's hidden tokens.

        It is `None` where a text has no token to hide.
        """
        hidden = [
            row[row[:, 1] != IGNORED, 0] for row in map(np.asarray, outputs)
        ]
        return [
            {"log_likelihood": float(row.mean()) if len(row) else None}
            for row in hidden
        ]


@keras.saving.register_keras_serializable("tf_adapters")
class MaskedLMHead(keras.layers.Layer):
    """How likely the hidden tokens are.

    Args:
        vocabulary_size: Integer.
        embedding_width: Integer.
        activation: Name of an activation.
        epsilon: Epsilon of the layer norm.

    Call arguments:
        outputs: Dict that `AdaptedEncoder` returns, with the encoder's
            `token_embeddings` `(vocabulary, embedding_width)`, and with
            `masked_positions` and `masked_ids` `(batch, most)`.
        seeds: Not used: the head has no dropout.

    Returns:
        Float32 tensor `(batch, most, 2)`: the logarithm of the probability of
        each hidden token, and 1 where no token is likelier, else 0; both
        `IGNORED` where a text has no further hidden token.
    """

    def __init__(
        self, vocabulary_size, embedding_width, activation, epsilon, **kwargs
    ):
        super().__init__(autocast=False, **kwargs)
        self.vocabulary_size = vocabulary_size
        self.embedding_width = embedding_width
        self.epsilon = epsilon
        self._activation = activations.get(activation)

    def build(self, width):
        narrow = self.embedding_width
        self.kernel = self.add_weight(
            (width, narrow),
            keras.initializers.TruncatedNormal(stddev=0.02),
            name="kernel",
        )
        self.bias = self.add_weight((narrow,), "zeros", name="bias")
        self.gamma = self.add_weight((narrow,), "ones", name="gamma")
        self.beta = self.add_weight((narrow,), "zeros", name="beta")
        self.output_bias = self.add_weight(
            (self.vocabulary_size,), "zeros", name="output_bias"
        )

    def logits(self, x, token_embeddings):
        """Returns logits over the vocabulary of vectors `(..., width)`."""
        x = dense(
            ops.cast(x, "float32"), *map(_value, (self.kernel, self.bias))
        )
        x = layer_norm(
            self._activation(x),
            *map(_value, (self.gamma, self.beta)),
            self.epsilon,
        )
        table = ops.cast(ops.convert_to_tensor(token_embeddings), "float32")
        return ops.matmul(x, ops.transpose(table)) + _value(self.output_bias)

    def call(self, outputs, seeds=None):
        positions = outputs["masked_positions"]
        x = ops.take_along_axis(
            outputs["sequence_output"], positions[..., None], axis=1
        )
        logits = self.logits(x, outputs["token_embeddings"])
        ids = outputs["masked_ids"]
        there = ids != IGNORED
        right = ops.take_along_axis(
            logits, ops.where(there, ids, 0)[..., None], axis=-1
        )[..., 0]
        likelihood = right - ops.logsumexp(logits, axis=-1)
        hit = ops.cast(right >= ops.max(logits, axis=-1), "float32")
        values = ops.stack([likelihood, hit], axis=-1)
        return ops.where(there[..., None], values, float(IGNORED))


def _value(variable):
    return ops.convert_to_tensor(variable, "float32")
