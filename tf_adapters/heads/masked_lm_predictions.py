"""From predicted tokens back to the masks of texts."""

import dataclasses

import numpy as np

from tf_adapters.data.tokens import vocabulary


@dataclasses.dataclass(frozen=True)
class MaskSource:
    """What leads from predicted tokens back to rows.

    Attributes:
        ranks: List with a list for each row: for each mask of its texts the
            mask's place among those of the input, or `None` where the input
            ends before it.
        texts: What each token stands for, by id.
    """

    ranks: list
    texts: list

    @property
    def counts(self):
        """Number of masks in each input."""
        return [sum(rank is not None for rank in ranks) for ranks in self.ranks]

    def answers(self, outputs):
        """Returns what `MaskedLM.decode` returns."""
        return [
            {
                "masks": [
                    [] if rank is None else self._best(output[rank])
                    for rank in ranks
                ]
            }
            for output, ranks in zip(outputs, self.ranks, strict=True)
        ]

    def _best(self, values):
        return [
            {
                "token": self.texts[int(i)],
                "probability": round(float(probability), 6),
            }
            for probability, i in values
        ]


def make_mask_source(rows, fields, packer, token_ids, vocabulary_size):
    """Returns the `Source` of rows.

    Args:
        rows: List of dicts.
        fields: One or two keys of the rows.
        packer: `TextPacker` that reads masks.
        token_ids: The input of each row, with its special tokens.
        vocabulary_size: Number of tokens that may be predicted.
    """
    # A NUL is nothing to the packer either.
    texts = [[row[field].replace("\0", "") for field in fields] for row in rows]
    mask = packer.mask
    ranks = [
        _ranks([text.count(mask) for text in row], ids, packer)
        for row, ids in zip(texts, token_ids, strict=True)
    ]
    return MaskSource(
        ranks, vocabulary.token_texts(packer.tokenizer, vocabulary_size)
    )


def _ranks(numbers, ids, packer):
    """Returns an entry of `Source.ranks`: of two texts both may be cut.

    Args:
        numbers: Number of masks in each text.
        ids: The input.
        packer: `TextPacker`.
    """
    special = packer.special_tokens
    ends = np.isin(ids[1:], (*special.separators, special.end))
    # Where the first text ends; no text has special tokens.
    end = 1 + ends.argmax()
    indices = np.flatnonzero(ids == packer.mask_id)
    kept = (np.sum(indices < end), np.sum(indices > end))
    found = iter(range(len(indices)))
    return [
        next(found) if i < number_kept else None
        for number, number_kept in zip(numbers, kept, strict=False)
        for i in range(number)
    ]
