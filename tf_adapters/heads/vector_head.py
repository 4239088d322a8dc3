"""What heads of one value for each row, and those on one vector, share."""

import numpy as np

from tf_adapters.data.encoded import encode_texts
from tf_adapters.heads import metrics
from tf_adapters.heads.head import Head
from tf_adapters.heads.linear import LinearHead
from tf_adapters.heads.linear import check_reads
from tf_adapters.heads.linear import hidden_options


def rounded(probabilities):
    """Returns probabilities as a run stores them, so that files are small."""
    return np.round(probabilities, 5)


class ValueHead(Head):
    """A head that predicts one class, choice or number for each row."""

    def compare(self, outputs, targets, source=None):
        """Returns each row's right value and the predicted one."""
        return {"target": targets, "predicted": self.predictions(outputs)}

    @classmethod
    def score(cls, names, compared):
        """Returns metrics over a whole set, see `metrics.compute_metrics`."""
        return metrics.compute_metrics(names, *metrics.both(compared))


class VectorHead(ValueHead):
    """A head on one vector for each text, with the settings of `TextHead`."""

    signature = "text"

    def __post_init__(self):
        super().__post_init__()
        check_reads(self.reads)

    @property
    def is_linear(self):
        """Whether there is no hidden layer."""
        return self.hidden_layer == "none"

    def make_layer(self):
        """Returns the layer from encoder outputs to logits or a number."""
        return LinearHead(
            max(1, len(self.labels)),
            self.reads,
            self.dropout_rate,
            **hidden_options(self),
            name="head",
        )

    def encode(self, rows, fields, packer, labelled=True):
        """Returns an example for each row; see `encode_texts`."""
        targets = self.targets(rows) if labelled else None
        return encode_texts(rows, fields, packer, targets)
