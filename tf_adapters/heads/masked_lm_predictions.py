"""Maps predicted tokens back to the masks that the texts contain."""

from collections.abc import Iterable
from collections.abc import Sequence
import dataclasses
from typing import TYPE_CHECKING
from typing import Any

import numpy as np

from tf_adapters.data.tokens import vocabulary

if TYPE_CHECKING:
    from tf_adapters.data.tokens.packer import Packer


@dataclasses.dataclass(frozen=True)
class MaskSource:
    """The data for assigning predicted tokens to the masks of each row.

    Attributes:
        ranks: List with a list for each row. The row's list has an entry for
            each mask in its texts: the mask's index among the masks of the
            input, or `None` if the mask was cut off from the input.
        texts: List with the text of each token, in the order of token ids.
    """

    ranks: list[Any]
    texts: list[Any]

    @property
    def counts(self) -> list[int]:
        """List with the number of masks in each input."""
        return [sum(rank is not None for rank in ranks) for ranks in self.ranks]

    def answers(self, outputs: Iterable[np.ndarray]) -> list[dict[str, Any]]:
        """Returns a list with a dict of predicted tokens for each row.

        See `MaskedLM.decode`.

        Args:
            outputs: List with an output of `MaskedLMLayer` for each row, an
                array `(masks, num_best, 2)`.
        """
        return [
            {
                "masks": [
                    [] if rank is None else self._best(output[rank])
                    for rank in ranks
                ]
            }
            for output, ranks in zip(outputs, self.ranks, strict=True)
        ]

    def _best(self, values: np.ndarray) -> list[dict[str, Any]]:
        return [
            {
                "token": self.texts[int(i)],
                "probability": round(float(probability), 6),
            }
            for probability, i in values
        ]


def make_mask_source(
    rows: list[dict[str, Any]],
    fields: Sequence[str],
    packer: "Packer",
    token_ids: list[np.ndarray],
    vocabulary_size: int,
) -> MaskSource:
    """Finds the masks in the texts of rows, and returns a `MaskSource`.

    Args:
        rows: List of dicts.
        fields: One or two keys of the rows.
        packer: `TextPacker` that recognizes masks.
        token_ids: Token ids of each row's input, including special tokens.
        vocabulary_size: Number of tokens that can be predicted.
    """
    # Ignores NUL characters, as the packer does.
    texts = [[row[field].replace("\0", "") for field in fields] for row in rows]
    mask = packer.mask
    ranks = [
        _ranks([text.count(mask) for text in row], ids, packer)
        for row, ids in zip(texts, token_ids, strict=True)
    ]
    return MaskSource(
        ranks, vocabulary.token_texts(packer.tokenizer, vocabulary_size)
    )


def _ranks(
    numbers: list[int], ids: np.ndarray, packer: "Packer"
) -> list[int | None]:
    """Returns a row's entry of `MaskSource.ranks`.

    Args:
        numbers: List with the number of masks in each of the row's texts.
        ids: Token ids of the input. It may lack the ends of long texts.
        packer: `TextPacker`.
    """
    special = packer.special_tokens
    ends = np.isin(ids[1:], (*special.separators, special.end))
    # Texts contain no special tokens, so the first one ends the first text.
    end = 1 + ends.argmax()
    indices = np.flatnonzero(ids == packer.mask_id)
    kept = (np.sum(indices < end), np.sum(indices > end))
    found = iter(range(len(indices)))
    return [
        next(found) if i < number_kept else None
        for number, number_kept in zip(numbers, kept, strict=False)
        for i in range(number)
    ]
