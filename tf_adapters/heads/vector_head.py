"""What heads of one value for each row, and those on one vector, share."""

import dataclasses
import typing

import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown
from tf_adapters.data.encoded import encode_texts
from tf_adapters.data.encoded import encode_windows
from tf_adapters.data.tokens.windows import Windows
from tf_adapters.heads import metrics
from tf_adapters.heads.head import Head
from tf_adapters.heads.linear import check_reads
from tf_adapters.heads.linear import hidden_options
from tf_adapters.heads.windows import WindowsLayer


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


@dataclasses.dataclass(frozen=True, kw_only=True)
class VectorHead(ValueHead):
    """A head on one vector for each text, with the settings of `TextHead`.

    A text of more than `max_length` tokens can become several inputs, windows
    that overlap. The pooled outputs of its windows are the text's output, in
    training, too: the loss is that of the pooled output. A text that fits into
    one window has the output that it has without windows.

    Attributes:
        windows: Most windows of a text. 1 (default) cuts long texts. With more
            a row has one text, no pair.
        window_stride: Tokens between the beginnings of two windows. `None`
            (default): three quarters of the tokens that fit into one.
        pooling: `"mean"` (default) or `"max"` of the windows' logits or
            numbers.

    Examples:
        >>> head = heads.Classification(("no", "yes"), windows=4, pooling="max")
        >>> model = tf_adapters.adapt(encoder, methods.Pfeiffer(), head)
        >>> windows = {k: np.stack([v] * 3, 1) for k, v in features.items()}
        >>> tuple(model(windows).shape)  # Two texts of three windows.
        (2, 2)
    """

    windows: int = 1
    window_stride: int | None = None
    pooling: typing.Literal["mean", "max"] = "mean"

    at_inference = ("windows", "window_stride")

    def __post_init__(self):
        super().__post_init__()
        check_reads(self.reads)
        for name in ("windows", "window_stride"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(
                    f"`{name}` must be an integer from 1 on. Received: "
                    f"{name}={shown(value)}"
                )

    @property
    def signature(self):
        """How a SavedModel is called; see `Head`."""
        return "windows" if self.windows > 1 else "text"

    @property
    def feature_shape(self):
        """Shape of the token features: windows have an axis of their own."""
        return (None, None, None) if self.windows > 1 else (None, None)

    @property
    def is_linear(self):
        """Whether there is no hidden layer."""
        return self.hidden_layer == "none"

    def make_layer(self):
        """Returns the layer from encoder outputs to logits or a number."""
        return WindowsLayer(
            max(1, len(self.labels)),
            self.reads,
            self.dropout_rate,
            **hidden_options(self),
            pooling=self.pooling,
            name="head",
        )

    def encode(self, rows, fields, packer, labelled=True):
        """Returns an example for each row; see `encode_texts`.

        Raises:
            UserError: If there are windows, and two texts in a row.
        """
        self._check_fields(fields)
        targets = self.targets(rows) if labelled else None
        if self.windows == 1:
            return encode_texts(rows, fields, packer, targets)
        return encode_windows(
            rows, fields[0], packer, self._cut_into(), targets
        )

    def pack(self, packer, *texts):
        """Returns the features of a batch, in a graph, too, as `encode` does.

        Args:
            packer: `TextPacker`.
            *texts: List of strings or string tensor `(batch,)`, one or two.

        Raises:
            UserError: See `encode`.
        """
        if self.windows == 1:
            return packer(*texts)
        self._check_fields(texts)
        return packer.pack_windows(texts[0], self._cut_into())

    def _cut_into(self):
        return Windows(self.windows, self.window_stride)

    def _check_fields(self, fields):
        if self.windows > 1 and len(fields) > 1:
            raise UserError(
                "`windows` cuts one long text into several inputs, and here "
                f"two texts are read together. Received: windows="
                f"{self.windows} with {cut(' and '.join(map(str, fields)))}. "
                "Leave `windows` out; of pairs that are too long the ends are "
                "cut, tokens of the longer text first."
            )
