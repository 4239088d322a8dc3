"""What `fit` and `predict` of a text model share."""

import keras
import numpy as np

from tf_adapters import heads
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.data.encoded import Encoded
from tf_adapters.data.rows.class_ids import class_id
from tf_adapters.tasks.output_kinds import KINDS
from tf_adapters.text.batches import TextBatches

# Texts of about equal length are computed together where outputs have a row
# for each token.
_LENGTHS = (16, 32, 64, 128, 256, 512)


def is_of_tokens(head):
    """Returns whether a head's outputs are as long as the texts."""
    return head.reads == "sequence_output"


def metrics_of(head):
    """Returns the names of all metrics that suit a head."""
    kind = KINDS[heads.name_of(head)]
    binary_only = {"f1"} if len(head.labels) != 2 else set()
    return [name for name in kind.metrics if name not in binary_only]


def split_rows(rows, held_out, validation_split):
    """Returns the rows that train, and those that are evaluated or `None`.

    As Keras does, `validation_split` takes the last rows.

    Raises:
        UserError: If both are given, or nothing would be left to train on.
    """
    if not validation_split:
        return rows, held_out
    if held_out is not None:
        raise UserError(
            "Pass `validation_data` or `validation_split`, not both."
        )
    count = int(len(rows) * (1 - validation_split))
    if not 0 < count < len(rows):
        raise UserError(
            f"`validation_split={validation_split}` of {len(rows)} texts "
            "leaves none to train on, or none to evaluate. Expected: a share "
            "between 0 and 1."
        )
    return rows.part(0, count), rows.part(count)


def row_weights(head, rows, class_weight, sample_weight):
    """Returns the weight of each row's loss as an array, or `None`.

    Raises:
        UserError: If there are not as many weights as rows, a class is not
            known, or the head has no weights for rows.
    """
    if class_weight is None and sample_weight is None:
        return None
    kind = KINDS[heads.name_of(head)].label
    if kind not in ("class", "classes", "number", "choice"):
        raise UserError(
            "`class_weight` and `sample_weight` are for heads with one loss a "
            f"text. Received: a head of the kind {heads.name_of(head)}"
        )
    weights = np.ones(len(rows), "float32")
    if sample_weight is not None:
        weights = _checked_weights(sample_weight, len(rows))
    if class_weight is not None:
        if kind != "class":
            raise UserError("`class_weight` is for heads of one class a text.")
        by_id = {class_id(k, head.labels): v for k, v in class_weight.items()}
        weights = weights * [by_id.get(r["label"], 1.0) for r in rows.rows]
    return weights.astype("float32")


def _checked_weights(sample_weight, count):
    weights = np.asarray(sample_weight, "float32")
    if weights.shape != (count,) or not np.isfinite(weights).all():
        raise UserError(
            "`sample_weight` must be a finite number for each of the "
            f"{count} texts. Received: {shown(sample_weight)}"
        )
    return weights


class _Validation(keras.callbacks.Callback):
    """Logs the head's loss and metrics on held-out rows after each epoch."""

    def __init__(self, text_model, rows):
        super().__init__()
        self.text_model = text_model
        self.rows = rows

    def on_epoch_end(self, epoch, logs=None):
        values = self.text_model.evaluate_rows(self.rows)
        logs.update({f"val_{name}": value for name, value in values.items()})


def with_validation(callbacks, text_model, rows):
    """Returns callbacks of which the first one evaluates, if there are rows."""
    given = callbacks or []
    given = list(given) if isinstance(given, list | tuple) else [given]
    return given if rows is None else [_Validation(text_model, rows), *given]


def outputs_of(model, encoded, batch_size, pad_id, verbose, head):
    """Returns a list with a model's outputs for each example, in order."""
    rows = [None] * len(encoded)
    for length, places in _groups(encoded, is_of_tokens(head)):
        part = _part(encoded, places)
        batches = TextBatches(part, batch_size, pad_id, length=length)
        outputs = model.predict(batches, verbose=verbose)
        order = np.concatenate([batch.indices for batch in batches.plan])
        for place, row in zip(order, outputs, strict=True):
            rows[places[place]] = row
    return rows


def _groups(encoded, by_length):
    """Yields a common length, or `None`, and the places of some examples."""
    if not len(encoded):
        return
    everything = np.arange(len(encoded))
    if not by_length:
        yield None, everything
        return
    lengths = np.array([len(ids) for ids in encoded.token_ids])
    buckets = np.searchsorted(_LENGTHS, lengths)
    for bucket in np.unique(buckets):
        places = everything[buckets == bucket]
        yield int(lengths[places].max()), places


def _part(encoded, places):
    """Returns some of the examples, without targets."""
    segments = encoded.segment_ids
    return Encoded(
        [encoded.token_ids[place] for place in places],
        None if segments is None else [segments[place] for place in places],
        is_pooled=encoded.is_pooled,
    )
