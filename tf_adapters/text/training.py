"""Prepares the arguments of a text model's `fit`."""

from __future__ import annotations

from collections.abc import Mapping
import math
import numbers
from typing import TYPE_CHECKING
from typing import Any

import keras
from keras import ops
import numpy as np

from tf_adapters import heads
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.data.rows.class_ids import class_id
from tf_adapters.heads.regression import MEAN
from tf_adapters.tasks.output_kinds import KINDS
from tf_adapters.text import predicting
from tf_adapters.text.batches import TextBatches
from tf_adapters.text.later_batches import LaterBatches
from tf_adapters.text.rows import ROWS_AT_ONCE
from tf_adapters.text.rows import plain

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Sequence

    from tf_adapters.data.examples import Examples
    from tf_adapters.data.tokens.packer import Packer
    from tf_adapters.models.adapter_model import AdapterModel
    from tf_adapters.text.rows import TextRows


def batches_of(
    head: heads.Head,
    rows: TextRows,
    packer: Packer,
    batch_size: int,
    seed: int | None,
    weights: np.ndarray | None,
    epoch: int = 0,
) -> TextBatches | LaterBatches:
    """Returns a `PyDataset` of batches for training.

    Up to `ROWS_AT_ONCE` rows are tokenized immediately. If there are more rows,
    and the head predicts classes or a number without windows, they are
    tokenized on demand.

    Args:
        head: `Head`.
        rows: `TextRows` with labels.
        packer: `Packer`.
        batch_size: Rows per batch.
        seed: Integer that determines the order, or `None` for the order of the
            rows.
        weights: Array with the weight of each row's loss, or `None`.
        epoch: Number of the first epoch. Each epoch has another order. Defaults
            to 0.

    Raises:
        UserError: If no row has a label that the loss depends on.
    """
    options = {"seed": seed, "weights": weights, "epoch": epoch}
    if len(rows) > ROWS_AT_ONCE and predicting.is_of_texts(head):
        return LaterBatches(head, rows, packer, batch_size, **options)
    encoded = head.encode(rows.at(range(len(rows))), rows.fields, packer)
    _check_some_label(encoded)
    return TextBatches(encoded, batch_size, in_order=seed is None, **options)


def start_at_mean(
    model: AdapterModel, rows: TextRows, weights: np.ndarray | None
) -> None:
    """Sets the bias of a regression head to the mean label before it trains.

    This happens only if `initial_bias` is `"mean"`, and the bias is still 0.

    Args:
        model: `AdapterModel`.
        rows: `TextRows` with labels.
        weights: Array with the weight of each row's loss, or `None`.
    """
    head = model.head
    if not isinstance(head, heads.Regression) or head.initial_bias != MEAN:
        return
    bias = model.head_layer.bias
    if np.any(ops.convert_to_numpy(bias)):
        return
    labels = [row["label"] for row in rows]
    weights = (
        np.ones(len(labels)) if weights is None else weights[: len(labels)]
    )
    if np.sum(weights) > 0:
        bias.assign([np.average(labels, weights=weights)])


def _check_some_label(encoded: Examples) -> None:
    counts = encoded.counts
    if not len(encoded) or (counts is not None and not counts.sum()):
        raise UserError(
            "No text has a label that can be learned. An answer must be in its "
            "text at `answer_start`, counted in characters from 0; and at "
            "least one word must have a tag."
        )


def split_rows(
    rows: TextRows, held_out: Any, validation_split: float
) -> tuple[TextRows, Any]:
    """Returns the rows for training, and the data for validation or `None`.

    `held_out` is the argument `validation_data` of `fit`. As in Keras,
    `validation_split` holds out the last rows.

    Raises:
        UserError: If `held_out` and `validation_split` are both given,
            `validation_split` is no share, or one of the two parts would be
            empty.
    """
    if not validation_split:
        return rows, held_out
    if held_out is not None:
        raise UserError(
            "Pass `validation_data` or `validation_split`, not both."
        )
    is_number = isinstance(validation_split, numbers.Real)
    if not is_number or not 0 < validation_split < 1:
        raise UserError(
            "`validation_split` must be a number between 0 and 1, the share of "
            "the texts that is held out. Received: "
            f"validation_split={shown(validation_split)}"
        )
    count = int(len(rows) * (1 - validation_split))
    if not 0 < count < len(rows):
        raise UserError(
            f"`validation_split={validation_split}` of {len(rows)} texts "
            "leaves none to train on, or none to evaluate. Pass another share, "
            "or more texts."
        )
    return rows.part(0, count), rows.part(count)


def texts_and_labels(validation_data: Any) -> tuple[Any, Any]:
    """Returns the texts and the labels of held-out data.

    The labels are `None` if `validation_data`, an argument of `fit`, is a
    table.

    Raises:
        UserError: If it holds weights.
    """
    data = validation_data
    if not (isinstance(data, tuple) and len(data) in (2, 3)):
        return data, None
    if len(data) == 3 and data[2] is not None:
        raise UserError(
            "Evaluation of texts does not support weights. Pass "
            "`validation_data=(texts, labels)`. Received weights: "
            f"{shown(data[2])}"
        )
    return data[0], data[1]


def check_stream_arguments(
    y: Any, validation_split: float, sample_weight: Any
) -> None:
    """Raises a `UserError` if arguments of `fit` conflict with a dataset.

    A `tf.data.Dataset` holds labels and weights itself, and is not split.
    """
    if y is not None or sample_weight is not None:
        raise UserError(
            "A `tf.data.Dataset` holds labels and weights itself: `(texts, "
            "labels, weights)`. Pass neither `y` nor `sample_weight`."
        )
    if validation_split:
        raise UserError(
            "A `tf.data.Dataset` is not split, since its length may be "
            "unknown. Train on `dataset.skip(n)`, and pass "
            "`validation_data=dataset.take(n)`."
        )


def row_weights(
    head: heads.Head,
    rows: TextRows,
    class_weight: Mapping[Any, float] | None,
    sample_weight: Any,
) -> np.ndarray | None:
    """Returns an array with the weight of each row's loss.

    Returns `None` if no weights are given.

    Raises:
        UserError: If the number of weights differs from the number of rows, a
            class is unknown, or the head does not support weights.
    """
    if class_weight is None and sample_weight is None:
        return None
    kind = KINDS[heads.name_of(head)].label
    if kind not in ("class", "classes", "number", "choice"):
        raise UserError(
            "`class_weight` and `sample_weight` are for heads with one loss "
            f"per text. Received: a head of the kind {heads.name_of(head)}"
        )
    weights = np.ones(len(rows), "float32")
    if sample_weight is not None:
        weights = _checked_weights(sample_weight, len(rows))
    if class_weight is not None:
        by_id = weights_by_id(head, class_weight)
        of_rows = (by_id.get(row["label"], 1.0) for row in rows)
        weights = weights * np.fromiter(of_rows, "float64", len(rows))
    return weights.astype("float32")


def weights_by_id(
    head: heads.Head, class_weight: Mapping[Any, float]
) -> dict[int | None, float]:
    """Converts class weights to a dict from class id to weight.

    Args:
        head: `Head`.
        class_weight: Dict from a class's name or id to its weight.

    Raises:
        UserError: If a class is unknown, a weight is not a finite number, or
            the head does not have exactly one class per text.
    """
    if KINDS[heads.name_of(head)].label != "class":
        raise UserError("`class_weight` is for heads with one class per text.")
    if not isinstance(class_weight, Mapping):
        raise _no_class_weight(class_weight)
    weights = {}
    for name, given in class_weight.items():
        weight = plain(given)
        if not isinstance(weight, int | float) or not math.isfinite(weight):
            raise _no_class_weight(class_weight)
        weights[class_id(plain(name), head.labels)] = float(weight)
    return weights


def _no_class_weight(received: Any) -> UserError:
    return UserError(
        "`class_weight` must be a dict from the name or id of a class to a "
        'finite number, such as {"positive": 2.0}. Received: '
        f"{shown(received)}"
    )


def _checked_weights(sample_weight: Any, count: int) -> np.ndarray:
    try:
        weights = np.asarray(sample_weight, "float32")
    except (TypeError, ValueError):  # Texts, or lists of several lengths.
        weights = np.full((), np.nan)
    if weights.shape != (count,) or not np.isfinite(weights).all():
        raise UserError(
            "`sample_weight` must be a finite number for each of the "
            f"{count} texts. Received: {shown(sample_weight)}"
        )
    return weights


class _Validation(keras.callbacks.Callback):
    """Evaluates held-out texts after each epoch, and logs the metrics."""

    def __init__(self, evaluate: Callable[[], dict[str, float]]) -> None:
        super().__init__()
        self.evaluate = evaluate

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        values = self.evaluate()
        if logs is not None:
            logs.update({f"val_{k}": value for k, value in values.items()})


def with_validation(
    callbacks: keras.callbacks.Callback
    | Sequence[keras.callbacks.Callback]
    | None,
    evaluate: Callable[[], dict[str, float]] | None,
) -> list[keras.callbacks.Callback]:
    """Returns the callbacks as a list, with a validation callback in front.

    The validation callback evaluates the model after each epoch.

    Args:
        callbacks: Argument of `fit`.
        evaluate: Function that returns a dict of metrics, or `None` if there
            are no held-out texts.
    """
    given: Any = callbacks or []
    given = list(given) if isinstance(given, list | tuple) else [given]
    return given if evaluate is None else [_Validation(evaluate), *given]
