"""Predicts and evaluates rows of texts, for most heads in parts of 50,000."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

import numpy as np

from tf_adapters import heads
from tf_adapters.common.errors import UserError
from tf_adapters.data.examples import Examples
from tf_adapters.heads.vector_head import VectorHead
from tf_adapters.tasks.output_kinds import KINDS
from tf_adapters.text.batches import TextBatches
from tf_adapters.text.rows import ROWS_AT_ONCE
from tf_adapters.text.vectors import are_single
from tf_adapters.training.finite import check_outputs
from tf_adapters.training.mean_loss import mean_loss

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Iterator

    import keras

    from tf_adapters.data.tokens.packer import Packer
    from tf_adapters.text.rows import TextRows


# Limits of buckets, in tokens. If a head has an output for each token, texts of
# the same bucket, which have a similar length, are predicted together.
_LENGTHS = (16, 32, 64, 128, 256, 512)


def is_of_texts(head: heads.Head) -> bool:
    """Returns whether a head predicts classes or a number from one sequence.

    It is `False` for heads that split a long text into windows.
    """
    kind = KINDS[heads.name_of(head)].label
    if kind not in ("class", "classes", "number"):
        return False
    return isinstance(head, VectorHead) and head.windows == 1


def metric_names(head: heads.Head) -> list[str]:
    """Returns a list with the names of all metrics that apply to a head."""
    kind = KINDS[heads.name_of(head)]
    binary_only = {"f1"} if len(head.labels) != 2 else set()
    return [name for name in kind.metrics if name not in binary_only]


class Predictor:
    """Encodes rows with a packer, and computes a model's outputs for them.

    Args:
        model: Keras model that takes token features.
        head: The `Head` that encodes rows as examples.
        packer: `Packer`.
        batch_size: Examples per batch. Defaults to 32.
        verbose: See `keras.Model.predict`.
    """

    def __init__(
        self,
        model: keras.Model,
        head: heads.Head,
        packer: Packer,
        batch_size: int = 32,
        verbose: str | int = 0,
    ) -> None:
        self.model = model
        self.head = head
        self.packer = packer
        self.batch_size = batch_size
        self.verbose = verbose

    def _parts(
        self, rows: TextRows, labeled: bool = False
    ) -> Iterator[tuple[Examples, list[np.ndarray]]]:
        """Splits rows into parts, and yields each part's examples and outputs.

        The outputs are a list with an array for each example.
        """
        # A ranking compares all labeled rows, so they cannot be split.
        has_parts = self.head.makes_vectors and not labeled
        has_parts = has_parts or is_of_texts(self.head)
        size = ROWS_AT_ONCE if has_parts else len(rows)
        for part in rows.parts(size):
            encoded = self.head.encode(
                part.at(range(len(part))), part.fields, self.packer, labeled
            )
            yield (
                encoded,
                outputs_of(
                    self.model,
                    encoded,
                    self.batch_size,
                    self.verbose,
                    self.head,
                ),
            )

    def outputs(self, rows: TextRows) -> np.ndarray | list[np.ndarray]:
        """Returns the model's outputs for rows, as one array.

        If the head has an output for each token, returns a list of arrays.
        """
        parts = [outputs for _, outputs in self._parts(rows)]
        return parts[0] if self.head.is_of_tokens else _stacked(parts)

    def vectors(self, rows: TextRows) -> np.ndarray:
        """Returns the vectors of the texts in all rows, as one array.

        Raises:
            UserError: If a row is encoded as several examples, or as none.
        """
        parts = [*self._parts(rows)]
        if not are_single((encoded for encoded, _ in parts), len(rows)):
            raise UserError(
                f"A head of the kind {heads.name_of(self.head)} reads some of "
                "these texts as several inputs, or empty ones as none, so they "
                "have no single vector. Raise `max_length`, leave out empty "
                "texts, or encode with another head."
            )
        return _stacked(outputs for _, outputs in parts)

    def answers(self, rows: TextRows) -> list[dict[str, Any]]:
        """Returns the head's decoded predictions, a dict for each row."""
        answers = []
        for encoded, outputs in self._parts(rows):
            check_outputs(outputs, first=len(answers))
            answers += self.head.decode(outputs, encoded.source)
        return answers

    def evaluate(self, rows: TextRows) -> dict[str, float]:
        """Returns a dict of the loss and the head's metrics on labeled rows."""
        found = [
            (
                outputs,
                encoded.targets,
                mean_loss(self.head, outputs, encoded),
                encoded.count(np.arange(len(encoded))),
                encoded.source,
            )
            for encoded, outputs in self._parts(rows, labeled=True)
        ]
        outputs, targets, losses, counts, sources = zip(*found, strict=True)
        loss = losses[0]
        if len(found) > 1:
            loss = float(np.average(losses, weights=counts))
            outputs, targets = [_stacked(outputs)], [np.concatenate(targets)]
        check_outputs(outputs[0])
        values = self.head.evaluate(
            metric_names(self.head), outputs[0], targets[0], sources[0]
        )
        return {"loss": loss, **values}


def _stacked(parts: Iterable[list[np.ndarray]]) -> np.ndarray:
    return np.concatenate([np.stack(part) for part in parts])


def outputs_of(
    model: keras.Model,
    encoded: Examples,
    batch_size: int,
    verbose: Any,
    head: heads.Head,
) -> list[np.ndarray]:
    """Returns a list with a model's outputs for each encoded example."""
    rows: list[Any] = [None] * len(encoded)
    for length, places in _groups(encoded, head.is_of_tokens):
        part = _part(encoded, places)
        batches = TextBatches(part, batch_size, length=length)
        outputs = model.predict(batches, verbose=verbose)
        order = np.concatenate([batch.indices for batch in batches.plan])
        for place, row in zip(order, outputs, strict=True):
            rows[places[place]] = row
    return rows


def _groups(
    encoded: Examples, by_length: bool
) -> Iterator[tuple[int | None, np.ndarray]]:
    """Groups examples, and yields the length and the indices of each group.

    If `by_length` is true, examples of similar length form a group, and its
    length is the longest. Otherwise there is one group, with the length `None`.
    """
    if not len(encoded):
        return
    everything = np.arange(len(encoded))
    if not by_length:
        yield None, everything
        return
    lengths = encoded.lengths
    buckets = np.searchsorted(_LENGTHS, lengths)
    for bucket in np.unique(buckets):
        places = everything[buckets == bucket]
        yield int(lengths[places].max()), places


def _part(encoded: Examples, places: np.ndarray) -> Examples:
    """Returns the examples at the given indices, without targets."""
    segments = encoded.segment_ids
    return Examples(
        [encoded.token_ids[place] for place in places],
        None if segments is None else [segments[place] for place in places],
        pad_id=encoded.pad_id,
        is_pooled=encoded.is_pooled,
    )
