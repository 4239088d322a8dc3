"""Text vectors, trained so that related texts have a high cosine."""

from collections.abc import Iterable
from collections.abc import Sequence
import dataclasses
from typing import Any

from keras import ops
import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.common.types import Tensor
from tf_adapters.heads import ranking_metrics
from tf_adapters.heads.registry import register
from tf_adapters.heads.sentence_vector import TextVectorHead


@register("sentence_ranking")
@dataclasses.dataclass(frozen=True)
class SentenceRanking(TextVectorHead):
    """Gives each text a vector; related texts get a high cosine.

    A row has an anchor and its positive, such as a question and its answer, and
    optionally a negative. The loss is the cross-entropy of finding the positive
    among all positives and negatives of the batch, with the scaled cosines as
    logits (multiple negatives ranking; Henderson et al. 2017, arXiv:1705.00652,
    section 4). The default scale of 20 is from Reimers' code.

    The anchor itself, and the positives of other rows with an equal anchor, do
    not count as negatives. A text that occurs several times counts once.

    Negatives come from the rows that are computed together. With several
    replicas of a `tf.distribute` strategy, these are the rows of one replica.
    With `train.accumulation_steps`, these are the rows of one micro-batch. A
    larger batch on each device therefore makes the task harder. Rows that only
    pad a batch to a fixed size (`data.batching=fixed`, or any batching with
    `--backend=jax`) add their texts as negatives.

    Metrics rank all positives and negatives of a split for each anchor.

    Attributes:
        token_pooling: See `TextVectorHead`.
        scale: Factor of the cosines in the loss. Defaults to 20.

    Examples:
        >>> head = heads.SentenceRanking()
        >>> model = tf_adapters.adapt(encoder, methods.LoRA(), head)
        >>> pairs = {k: np.stack([v, v], 1) for k, v in features.items()}
        >>> vectors = model(pairs)  # Two pairs of texts.
        >>> vectors.shape[:2] == (2, 2)
        True
    """

    scale: float = 20.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scale <= 0:
            raise UserError(
                "`scale` must be a positive number. Received: "
                f"scale={shown(self.scale)}"
            )

    def targets(
        self, rows: list[dict[str, Any]], fields: Sequence[str]
    ) -> np.ndarray:
        """Returns integers that identify the texts, `(len(rows), texts)` int32.

        Equal texts have the same integer.
        """
        ids = {}
        return np.array(
            [
                [ids.setdefault(row[field], len(ids)) for field in fields]
                for row in rows
            ],
            "int32",
        )

    def loss(self, targets: Tensor, outputs: Tensor) -> Tensor:
        """Returns the cross-entropy of finding each row's positive, `(batch,)`.

        Args:
            targets: `(batch, texts)`, returned by the method `targets`.
            outputs: `(batch, texts, width)`, with an anchor, its positive and
                any number of negatives in each row.
        """
        targets = ops.cast(targets, "int32")
        candidates = ops.reshape(outputs[:, 1:], (-1, outputs.shape[-1]))
        cosines = ops.matmul(outputs[:, 0], ops.transpose(candidates))
        own = ops.sum(outputs[:, 0] * outputs[:, 1], axis=-1, keepdims=True)
        others = ops.where(_are_no_negatives(targets), -1e9, cosines)
        logits = self.scale * ops.concatenate([own, others], axis=-1)
        return ops.logsumexp(logits, axis=-1) - logits[:, 0]

    def compare(
        self, outputs: Tensor, targets: Tensor, source: Any = None
    ) -> dict[str, Any]:
        """Returns a dict with the rank of each row's positive as `predicted`.

        `target` has the best rank, 1, for each row.
        """
        return {
            "target": np.ones(len(outputs), "int32"),
            "predicted": ranking_metrics.ranks(
                np.asarray(outputs, "float32"), np.asarray(targets)
            ),
        }

    @classmethod
    def score(
        cls, names: Iterable[str], compared: dict[str, Any]
    ) -> dict[str, float]:
        """Computes metrics over a whole set; see `ranking_metrics`."""
        return ranking_metrics.compute_ranking(names, compared["predicted"])


def _are_no_negatives(targets: Tensor) -> Tensor:
    """Returns, for each row, which candidates do not count as negatives.

    The candidates are all texts of the batch except the anchors.

    Args:
        targets: `(batch, texts of a row)`. Integers that identify the texts.

    Returns:
        Boolean tensor `(batch, candidates)`. An entry is true if the candidate
        equals the row's anchor, is the positive of a row with an equal anchor
        (including the row itself), or repeats an earlier candidate.
    """
    anchors, positives = targets[:, 0], targets[:, 1]
    candidates = ops.reshape(targets[:, 1:], (-1,))
    same_anchor = ops.cast(anchors[:, None] == anchors, "float32")
    same_text = ops.cast(positives[:, None] == candidates, "float32")
    is_positive = ops.matmul(same_anchor, same_text) > 0
    places = ops.arange(ops.shape(candidates)[0])
    is_earlier = places[:, None] < places
    is_repeated = ops.any(
        (candidates[:, None] == candidates) & is_earlier, axis=0
    )
    return is_positive | (anchors[:, None] == candidates) | is_repeated
