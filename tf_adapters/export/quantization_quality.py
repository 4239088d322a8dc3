"""Compares the outputs of a quantized file with those of the float file."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING
from typing import Any

import numpy as np

from tf_adapters.common.errors import AdapterError

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Iterable
    from collections.abc import Mapping
    from collections.abc import Sequence

    from tf_adapters.heads.head import Head

    Run = Callable[[dict[str, np.ndarray]], Mapping[str, Any]]

# A file with a smaller share of equal predictions, or of explained variance, is
# not written.
LEAST_EQUAL = 0.9
LEAST_EXPLAINED = 0.8
# Lower logits belong to padding: questions may have fewer choices.
_LOWEST = -1e6


@dataclasses.dataclass(frozen=True)
class Quality:
    """How close the outputs of a quantized file are to the float file's.

    Attributes:
        rows: Number of the compared rows, or tokens of a tagging model.
        equal_predictions: Share of rows with an equal predicted class, choice
            or set of classes. `None` if the head predicts something else.
        explained_variance: 1 minus the ratio of the mean squared difference of
            the outputs to the variance of the float file's outputs.
    """

    rows: int
    equal_predictions: float | None
    explained_variance: float

    def __str__(self) -> str:
        explained = f"explains {self.explained_variance:.1%} of the outputs'"
        if self.equal_predictions is None:
            return f"{explained} variance on {self.rows} rows"
        equal = f"{self.equal_predictions:.1%} of {self.rows:,} predictions"
        return f"gives {equal} of the float32 file, {explained} variance"

    def check(self, precision: str) -> None:
        """Raises an `AdapterError` if the quality is too low.

        If the head predicts classes or choices, 90% of them must be equal.
        Otherwise, 80% of the variance must be explained.

        Args:
            precision: Precision of the file, for the message.
        """
        value, least = self.equal_predictions, LEAST_EQUAL
        if value is None:
            value, least = self.explained_variance, LEAST_EXPLAINED
        if not value >= least:
            closer = "float32" if precision == "int8" else "int8 or float32"
            raise AdapterError(
                f"The {precision} file {self}; at least {least:.0%} are "
                f"needed. Nothing was written. Export with {closer}. A model "
                "that is undecided on most texts loses most: train it longer."
            )


def report(
    head: Head,
    run_float: Run,
    run_quantized: Run,
    batches: Iterable[Mapping[str, np.ndarray]],
    precision: str,
) -> dict[str, str]:
    """Prints the `Quality` of a quantized file, and checks it.

    Args:
        head: See `compare`.
        run_float: See `compare`.
        run_quantized: See `compare`.
        batches: See `compare`.
        precision: Precision of the quantized file.

    Returns:
        Dict from name to string, for the metadata of the file: `precision`, and
        `quality`, the `Quality` as JSON.

    Raises:
        AdapterError: See `Quality.check`.
    """
    quality = compare(head, run_float, run_quantized, batches)
    print(f"The {precision} file {quality}.")
    quality.check(precision)
    facts = json.dumps(dataclasses.asdict(quality))
    return {"precision": precision, "quality": facts}


def compare(
    head: Head,
    run_float: Run,
    run_quantized: Run,
    batches: Iterable[Mapping[str, np.ndarray]],
) -> Quality:
    """Runs a float file and a quantized file, and returns the `Quality`.

    Args:
        head: `Head` of the model.
        run_float: Function that runs the float file on a dict of features.
        run_quantized: The same for the quantized file.
        batches: Dicts with the features of texts.
    """
    name = "logits" if head.gives_logits else "outputs"
    equal, pairs = [], []
    for features in batches:
        expected, found = (
            _rows(head, run(dict(features))[name], features["padding_mask"])
            for run in (run_float, run_quantized)
        )
        predicted = _predictions(head, expected)
        if predicted is not None:
            same = predicted == _predictions(head, found)
            equal += same.reshape(len(same), -1).all(axis=1).tolist()
        pairs.append((expected, found))
    expected, found = map(_joined, zip(*pairs, strict=True))
    share = sum(equal) / len(equal) if equal else None
    return Quality(len(expected), share, _explained(expected, found))


def _explained(expected: np.ndarray, found: np.ndarray) -> float:
    """Returns the share of the variance of `expected` that `found` explains.

    If all rows are equal, as with one row, the mean square is used in place of
    the variance.
    """
    is_there = expected > _LOWEST  # False for NaN.
    means = np.mean(expected, axis=0, where=is_there)
    total = np.sum((expected - means) ** 2, where=is_there)
    total = total or np.sum(expected**2, where=is_there)
    error = np.sum((found - expected) ** 2, where=is_there)
    return float(1 - error / total) if total else 0.0


def _joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Joins the outputs of all batches into an array `(rows, widest output)`.

    Narrower rows are padded with NaN: batches of questions may have different
    numbers of choices.
    """
    rows = [part.reshape(len(part), -1) for part in parts]
    width = max(part.shape[1] for part in rows)
    return np.concatenate(
        [
            np.pad(
                part,
                ((0, 0), (0, width - part.shape[1])),
                constant_values=np.nan,
            )
            for part in rows
        ]
    )


def _rows(head: Head, outputs: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Returns the outputs of each row or, for heads of tokens, of each token.

    For heads of tokens, `mask` is the padding mask: padding is dropped.
    """
    is_of_tokens = head.is_of_tokens and outputs.shape[:2] == mask.shape
    return outputs[mask.astype(bool)] if is_of_tokens else outputs


def _predictions(head: Head, outputs: np.ndarray) -> np.ndarray | None:
    """Returns the predicted classes or choices as an array of integers.

    Returns `None` if the head predicts something else.
    """
    if head.is_of_tokens:
        return outputs.argmax(axis=-1) if head.labels else None
    if head.signature not in ("text", "windows", "choice"):
        return None
    valued: Any = head
    found = np.asarray(valued.predictions(outputs))
    return found if np.issubdtype(found.dtype, np.integer) else None
