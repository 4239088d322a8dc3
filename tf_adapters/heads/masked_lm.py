"""Masked language modeling: the head predicts masked tokens of a text."""

from collections.abc import Iterable
from collections.abc import Sequence
import dataclasses
import typing
from typing import TYPE_CHECKING
from typing import Any
from typing import Self

from keras import ops
import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.common.types import Tensor
from tf_adapters.data.examples import IGNORED
from tf_adapters.data.examples import Examples
from tf_adapters.data.examples import Masking
from tf_adapters.data.examples import encode_texts
from tf_adapters.data.tokens import vocabulary
from tf_adapters.heads import masked_lm_predictions
from tf_adapters.heads.head import Head
from tf_adapters.heads.masked_lm_layer import MaskedLMLayer
from tf_adapters.heads.registry import register

if TYPE_CHECKING:
    from tf_adapters.encoders.encoder import Encoder
    from tf_adapters.tasks.task import Task


@register("masked_lm")
@dataclasses.dataclass(frozen=True)
class MaskedLM(Head):
    """Predicts masked tokens with BERT's head over the vocabulary.

    The head has a dense layer, an activation and a layer norm, followed by a
    matrix multiplication with the encoder's token embedding and a bias (Devlin
    et al. 2019; google-research/bert, run_pretraining.py,
    `get_masked_lm_output`).

    Attributes:
        vocabulary_size: Number of tokens in the vocabulary.
        embedding_width: Width of the token embedding.
        activation: Name of the activation; see
            `tf_adapters.layers.activations`.
        layer_norm_epsilon: Epsilon of the layer norm.
        mask_share: Share of a text's tokens to mask. At least one token is
            masked. Defaults to 0.15.
        whole_words: Whether to mask whole words, as in Google's later BERT.
        seed: Integer that determines which tokens are masked.
        num_best: Number of tokens to predict for each mask of a text. Defaults
            to 5.

    Examples:
        >>> masked = heads.MaskedLM.for_encoder(encoder)
        >>> model = tf_adapters.adapt(encoder, methods.Pfeiffer(), masked)
        >>> masked.vocabulary_size == tokenizer.vocabulary_size()
        True
    """

    vocabulary_size: int
    embedding_width: int
    activation: str = "gelu"
    layer_norm_epsilon: float = 1e-12
    mask_share: float = 0.15
    whole_words: bool = False
    seed: int = 0
    num_best: int = 5

    signature = "masked_lm"
    reads_token_embeddings = True
    further_features: typing.ClassVar[dict[str, tuple[None, ...]]] = {
        "masked_positions": (None, None)
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.mask_share <= 1 or self.num_best < 1:
            raise UserError(
                "`mask_share` is a share above 0 and at most 1, and `num_best` "
                f"at least 1. Received: mask_share={self.mask_share}, "
                f"num_best={self.num_best}"
            )

    @classmethod
    def for_task(
        cls, task: "Task", encoder: "Encoder | None" = None, **settings: Any
    ) -> Self:
        """Creates the head for the vocabulary of an encoder.

        Raises:
            UserError: If `encoder` is missing.
        """
        if encoder is None:
            raise UserError(
                "A masked_lm head is made by `MaskedLM.for_encoder(encoder)`."
            )
        return cls.for_encoder(encoder, **settings)

    @classmethod
    def for_encoder(cls, encoder: "Encoder", **options: Any) -> Self:
        """Creates the head for the vocabulary of an encoder.

        Args:
            encoder: `Encoder`; see `load_encoder`.
            **options: Attributes of the head, except `vocabulary_size` and
                `embedding_width`, which are the encoder's. `activation` and
                `layer_norm_epsilon` default to the encoder's.

        Raises:
            UserError: If `options` contains one of the two sizes.
        """
        for name in ("vocabulary_size", "embedding_width"):
            if name in options:
                raise UserError(
                    f"`{name}` of a masked_lm head is the encoder's and cannot "
                    f"be set. Received: {name}={shown(options[name])}"
                )
        table = encoder.backbone.token_embedding
        own = encoder.architecture.masked_lm_activation
        defaults = {
            "activation": own or encoder.activation,
            "layer_norm_epsilon": encoder.layer_norm_epsilon,
        }
        return cls(table.input_dim, table.output_dim, **(defaults | options))

    def make_layer(self) -> MaskedLMLayer:
        """Creates the `MaskedLMLayer`."""
        return MaskedLMLayer(
            self.vocabulary_size,
            self.embedding_width,
            self.activation,
            self.layer_norm_epsilon,
            min(self.num_best, self.vocabulary_size),
            name="head",
        )

    def attach(self, layer: MaskedLMLayer, encoder: Any) -> None:
        """Makes a layer apply the inverse of an encoder's invertible adapter.

        Has no effect if the encoder has no such adapter.

        Raises:
            UserError: If there is an invertible adapter and the token embedding
                does not have the encoder's width.
        """
        undo = encoder.undo_embeddings
        if undo is not None and self.embedding_width != encoder.width:
            raise UserError(
                "An invertible adapter maps vectors of the encoder's width, "
                f"{encoder.width}, but the token embeddings have width "
                f"{self.embedding_width} (as in ELECTRA), so masked tokens "
                "cannot be predicted with it. Use a method without one."
            )
        layer.undo_embeddings = undo

    def encode(
        self,
        rows: list[dict[str, Any]],
        fields: Sequence[str],
        packer: Any,
        labeled: bool = True,
    ) -> Examples:
        """Converts each row to an example; its label is ignored.

        If a field is a list of texts, such as words or the choices of a
        question, they are joined by spaces. If there are three fields, the
        first two are joined as well.

        Args:
            rows: List of dicts.
            fields: One to three keys of the rows.
            packer: `TextPacker`.
            labeled: Whether to mask random tokens. If `False`, the head
                predicts the mask tokens that the texts contain.
        """
        rows, fields = _plain_texts(rows, fields)
        if not labeled:
            return self._encode_masks(rows, fields, packer.reading_masks())
        encoded = encode_texts(rows, fields, packer)
        special = packer.special_ids
        counts = [self._count(ids, special) for ids in encoded.token_ids]
        masking = Masking(
            packer.mask_id,
            tuple(special),
            self.vocabulary_size,
            vocabulary.continues_word(packer.tokenizer)
            if self.whole_words
            else None,
            self.seed,
        )
        return dataclasses.replace(
            encoded, counts=np.array(counts, "int32"), masking=masking
        )

    def _encode_masks(
        self, rows: list[dict[str, Any]], fields: Sequence[str], packer: Any
    ) -> Examples:
        encoded = encode_texts(rows, fields, packer)
        source = masked_lm_predictions.make_mask_source(
            rows, fields, packer, encoded.token_ids, self.vocabulary_size
        )
        return dataclasses.replace(
            encoded,
            counts=np.array(source.counts, "int32"),
            source=source,
            masking=Masking(
                packer.mask_id, (), self.vocabulary_size, is_drawn=False
            ),
        )

    def _count(self, ids: np.ndarray, special: list[int]) -> int:
        """Returns how many tokens of an example with token `ids` to mask."""
        inside = int(np.count_nonzero(np.isin(ids, special, invert=True)))
        return min(inside, max(1, round(self.mask_share * inside)))

    def loss(self, targets: Tensor, outputs: Tensor) -> Tensor:
        """Returns the cross-entropy summed over masked tokens, `(batch,)`."""
        there = targets != IGNORED
        return -ops.sum(ops.where(there, outputs[..., 0], 0.0), axis=-1)

    def evaluate(
        self,
        names: Iterable[str],
        outputs: Tensor,
        targets: Tensor,
        source: Any,
    ) -> dict[str, float]:
        """Computes the mean metrics over all masked tokens of a set.

        `loss` is the cross-entropy in nats, and `log_likelihood` is its
        negative. `masked_accuracy` is the share of masked tokens for which the
        most probable token is right.
        """
        values = np.concatenate(outputs)
        values = values[values[:, 1] != IGNORED]
        found = {
            "log_likelihood": float(values[:, 0].mean()),
            "masked_accuracy": float(values[:, 1].mean()),
            "loss": -float(values[:, 0].mean()),
        }
        return {name: found[name] for name in names}

    def decode(
        self, outputs: Tensor, source: masked_lm_predictions.MaskSource
    ) -> list[dict[str, Any]]:
        """Returns a list with a dict of predicted tokens for each row.

        In it, `masks` has a list for each mask in the row's texts, in order.
        Each list has a dict with `token` (see `vocabulary.token_texts`) and
        `probability` for each of the most probable tokens. A mask's list is
        empty if the mask was cut off from the input.
        """
        return source.answers(outputs)


def _plain_texts(
    rows: list[dict[str, Any]], fields: Sequence[str]
) -> tuple[list[dict[str, str]], Sequence[str]]:
    """Returns rows with one or two strings each, and the keys of the strings.

    A list of strings is joined by spaces. If there are three fields, the first
    two are joined as well.
    """
    plain = [{field: _joined(row[field]) for field in fields} for row in rows]
    if len(fields) < 3:
        return plain, fields
    first, second, last = fields
    joined = [
        {**row, second: f"{row[first]} {row[second]}".strip()} for row in plain
    ]
    return joined, (second, last)


def _joined(value: str | list[str]) -> str:
    return value if isinstance(value, str) else " ".join(value)
