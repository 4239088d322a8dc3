"""Base classes of heads that predict one value for each row."""

from collections.abc import Iterable
from collections.abc import Sequence
import dataclasses
import typing
from typing import Any

import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown
from tf_adapters.common.types import Tensor
from tf_adapters.data.examples import Examples
from tf_adapters.data.examples import encode_texts
from tf_adapters.data.examples import encode_windows
from tf_adapters.data.tokens.windows import Windows
from tf_adapters.heads import metrics
from tf_adapters.heads.head import Head
from tf_adapters.heads.linear import bank_parts
from tf_adapters.heads.linear import check_reads
from tf_adapters.heads.linear import hidden_options
from tf_adapters.heads.windows import WindowsLayer
from tf_adapters.layers.banks.bank_layer import Part


def rounded(probabilities: np.ndarray) -> np.ndarray:
    """Rounds probabilities to five decimals, to keep a run's files small."""
    return np.round(probabilities, 5)


class ValueHead(Head):
    """A head that predicts one class, choice or number for each row."""

    def predictions(self, outputs: Tensor) -> np.ndarray:
        """Returns the predicted class id, choice or number of each row."""
        raise NotImplementedError

    def compare(
        self, outputs: Tensor, targets: Tensor, source: Any = None
    ) -> dict[str, Any]:
        """Returns a dict with `target` and `predicted`, one value per row."""
        return {"target": targets, "predicted": self.predictions(outputs)}

    @classmethod
    def score(
        cls, names: Iterable[str], compared: dict[str, Any]
    ) -> dict[str, float]:
        """Computes metrics over a whole set; see `metrics.compute_metrics`."""
        return metrics.compute_metrics(names, *metrics.both(compared))


@dataclasses.dataclass(frozen=True, kw_only=True)
class VectorHead(ValueHead):
    """Base class of heads that read one vector for each text.

    A text of more than `max_length` tokens can be split into overlapping
    windows. Each window is an input of its own, and the outputs of the windows
    are pooled to one output for the text. In training, the loss is computed
    from the pooled output. If a text fits into one window, its output is the
    same as without windows.

    Attributes:
        windows: Maximum number of windows of a text. 1 (default) cuts long
            texts. With more than 1, a row must have one text, not a pair.
        window_stride: Number of tokens between the starts of two windows.
            `None` (default) is three quarters of the tokens of a window.
        pooling: Function that pools the windows' logits or numbers: `"mean"`
            (default) or `"max"`.

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

    def __post_init__(self) -> None:
        super().__post_init__()
        check_reads(self.reads)
        for name in ("windows", "window_stride"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(
                    f"`{name}` must be an integer of at least 1. Received: "
                    f"{name}={shown(value)}"
                )

    def targets(self, rows: list[dict[str, Any]]) -> np.ndarray:
        """Returns an array with the label of each row."""
        raise NotImplementedError

    @property
    def signature(self) -> str:
        """The signature of an exported model; see `Head`."""
        return "windows" if self.windows > 1 else "text"

    @property
    def feature_shape(self) -> tuple[None, ...]:
        """The shape of the token features, with an axis for windows, if any."""
        return (None, None, None) if self.windows > 1 else (None, None)

    @property
    def is_linear(self) -> bool:
        """Whether the head is only a linear layer, without a dense layer."""
        settings: Any = self  # Subclasses have `hidden_layer`.
        return settings.hidden_layer == "none"

    def make_layer(self) -> WindowsLayer:
        """Creates the layer that maps encoder outputs to logits or a number."""
        settings: Any = self  # Subclasses have `dropout_rate`.
        return WindowsLayer(
            max(1, len(self.labels)),
            self.reads,
            settings.dropout_rate,
            **hidden_options(self),
            pooling=self.pooling,
            name="head",
        )

    def bank_parts(self, layer: Any) -> list[Part]:
        """Returns the weights of `layer` in the form that a bank stores.

        Raises:
            UserError: If the head reads several windows of a text.
        """
        if self.windows > 1:
            raise UserError(
                "Its head pools the windows of a long text, and a bank reads "
                "one input for each text."
            )
        return bank_parts(layer, self.reads)

    def encode(
        self,
        rows: list[dict[str, Any]],
        fields: Sequence[str],
        packer: Any,
        labeled: bool = True,
    ) -> Examples:
        """Converts each row to an example; see `encode_texts`.

        Raises:
            UserError: If `windows` is greater than 1 and there are two fields.
        """
        self._check_fields(fields)
        targets = self.targets(rows) if labeled else None
        if self.windows == 1:
            return encode_texts(rows, fields, packer, targets)
        return encode_windows(
            rows, fields[0], packer, self._cut_into(), targets
        )

    def pack(
        self, packer: Any, *texts: list[str] | Tensor
    ) -> dict[str, Tensor]:
        """Converts a batch of texts to a dict of features for the model.

        In contrast to `encode`, this method takes texts instead of rows, and
        can be called in a TensorFlow graph.

        Args:
            packer: `TextPacker`.
            *texts: One or two lists of strings or string tensors `(batch,)`.

        Raises:
            UserError: See `encode`.
        """
        if self.windows == 1:
            return packer(*texts)
        self._check_fields(texts)
        return packer.pack_windows(texts[0], self._cut_into())

    def _cut_into(self) -> Windows:
        return Windows(self.windows, self.window_stride)

    def _check_fields(self, fields: Sequence[object]) -> None:
        if self.windows > 1 and len(fields) > 1:
            raise UserError(
                "`windows` cuts one long text into several inputs, but here "
                "two texts are read together. Received: "
                f"windows={self.windows} with "
                f"{cut(' and '.join(map(str, fields)))}. Leave `windows` out; "
                "pairs that are too long are cut at the ends, tokens of the "
                "longer text first."
            )
