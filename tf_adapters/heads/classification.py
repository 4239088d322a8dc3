"""One class for each text."""

import dataclasses
import numbers

from keras import ops
import numpy as np
import scipy.special

from tf_adapters.common.errors import UserError
from tf_adapters.data.encoded import encode_texts
from tf_adapters.heads import metrics
from tf_adapters.heads.linear import LinearHead
from tf_adapters.heads.linear import check_reads


@dataclasses.dataclass(frozen=True)
class Classification:
    """A linear classifier on one vector for each text.

    Attributes:
        labels: Class names in the order of their ids; at least two.
        reads: `"first_token"` (default) or `"pooled_output"`.
        dropout_rate: Dropout before the linear layer. Defaults to 0.1 (Devlin
            et al. 2019).
    """

    labels: tuple[str, ...]
    reads: str = "first_token"
    dropout_rate: float = 0.1

    def __post_init__(self):
        object.__setattr__(self, "labels", tuple(self.labels))
        check_reads(self.reads)
        if len(self.labels) < 2:
            raise UserError(
                "A classifier needs at least two labels. Received: "
                f"labels={self.labels}"
            )

    def make_layer(self):
        """Returns the layer from encoder outputs to logits."""
        return LinearHead(
            len(self.labels), self.reads, self.dropout_rate, name="head"
        )

    def encode(self, rows, fields, packer, labelled=True):
        """Returns an example for each row; see `encode_texts`."""
        targets = self.targets(rows) if labelled else None
        return encode_texts(rows, fields, packer, targets)

    def targets(self, rows):
        """Returns the class ids of rows, `(len(rows),)` int32.

        Raises:
            UserError: If a row has no label or one that is no class id; names
                the row.
        """
        return np.array(
            [self._class_id(i, row["label"]) for i, row in enumerate(rows)],
            "int32",
        )

    def _class_id(self, place, label):
        is_id = isinstance(label, numbers.Integral)
        if not is_id or not 0 <= label < len(self.labels):
            raise UserError(
                f"Row {place} (the first is 0) has the label {label!r}; "
                f"expected a class id from 0 to {len(self.labels) - 1}: "
                f"{', '.join(self.labels)}. Leave out rows without a label."
            )
        return label

    def loss(self, targets, outputs):
        """Returns the cross-entropy of each example, `(batch,)`."""
        return ops.sparse_categorical_crossentropy(
            targets, outputs, from_logits=True
        )

    def predictions(self, outputs):
        """Returns the most probable class ids of logits, as metrics want."""
        return np.argmax(outputs, axis=-1)

    def evaluate(self, names, outputs, targets, source=None):
        """Returns metrics over a whole set, see `metrics.compute`."""
        return metrics.compute_metrics(
            names, targets, self.predictions(outputs)
        )

    def decode(self, outputs, source=None):
        """Returns one dict for each row of logits, for people and JSON."""
        probabilities = scipy.special.softmax(
            np.asarray(outputs, "float64"), axis=-1
        )
        return [
            {
                "label": self.labels[int(np.argmax(row))],
                "probabilities": {
                    label: round(float(p), 6)
                    for label, p in zip(self.labels, row, strict=True)
                },
            }
            for row in probabilities
        ]
