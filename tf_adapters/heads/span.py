"""Question answering: the answer is a span of a text."""

from collections.abc import Iterable
from collections.abc import Sequence
import dataclasses
from typing import Any

from keras import ops
import numpy as np
import scipy.special

from tf_adapters.common.errors import UserError
from tf_adapters.common.types import Tensor
from tf_adapters.data.examples import IGNORED
from tf_adapters.data.examples import Examples
from tf_adapters.heads import explained
from tf_adapters.heads import metrics
from tf_adapters.heads import span_metrics
from tf_adapters.heads import span_windows
from tf_adapters.heads.explained import Explained
from tf_adapters.heads.head import Head
from tf_adapters.heads.linear import HiddenLayer
from tf_adapters.heads.linear import bank_parts
from tf_adapters.heads.linear import hidden_options
from tf_adapters.heads.registry import register
from tf_adapters.heads.tokens import TokenLayer
from tf_adapters.layers.banks.bank_layer import Part


@register("span")
@dataclasses.dataclass(frozen=True)
class Span(Head):
    """Predicts the first and last token of an answer.

    The head has two logits for each token (Devlin et al. 2019, section 4.2). A
    text that is too long is split into overlapping windows. If a window does
    not contain the whole answer, its target is the first token, `[CLS]`. The
    defaults are from the paper's code (google-research/bert, run_squad.py).

    Attributes:
        stride: Maximum number of tokens between the starts of two windows.
            Defaults to 128. A smaller stride is used if windows would
            otherwise overlap by less than `max_answer_tokens`.
        max_question_tokens: Maximum length of a question. Longer questions are
            cut. Defaults to 64.
        max_answer_tokens: Maximum length of an answer. Defaults to 30.
        num_best: Number of first tokens and of last tokens to consider in each
            window, and of answers to return for each row: those with the
            highest scores. Defaults to 20.
        dropout_rate: Rate of dropout before the linear layer. Defaults to 0,
            since the paper's code has no dropout.
        hidden_layer: See `TextHead`.
        hidden_dropout_rate: See `TextHead`.

    Examples:
        >>> model = tf_adapters.adapt(encoder, methods.Pfeiffer(), heads.Span())
        >>> model(features).shape[-1]  # Logits of each token: first, last.
        2
    """

    stride: int = 128
    max_question_tokens: int = 64
    max_answer_tokens: int = 30
    num_best: int = 20
    dropout_rate: float = 0.0
    hidden_layer: HiddenLayer = "none"
    hidden_dropout_rate: float = 0.0

    signature = "span"
    gives_logits = True
    at_inference = (
        "stride",
        "max_question_tokens",
        "max_answer_tokens",
        "num_best",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in Span.at_inference:
            least = 0 if name == "max_question_tokens" else 1
            if getattr(self, name) < least:
                raise UserError(
                    f"`{name}` must be at least {least}. Received: "
                    f"{name}={getattr(self, name)}"
                )

    def make_layer(self) -> TokenLayer:
        """Creates the layer that maps each token to two logits."""
        return TokenLayer(
            2, self.dropout_rate, **hidden_options(self), name="head"
        )

    def bank_parts(self, layer: Any) -> list[Part]:
        """Returns the weights of `layer` in the form that a bank stores."""
        return bank_parts(layer, self.reads)

    def encode(
        self,
        rows: list[dict[str, Any]],
        fields: Sequence[str],
        packer: Any,
        labeled: bool = True,
    ) -> Examples:
        """Converts each window of each text to an example.

        Args:
            rows: List of dicts.
            fields: The keys of the question and of the text.
            packer: `TextPacker`.
            labeled: Whether rows have answers. The first answer is the target.
                If it does not occur at its position in the text, the row has
                no target.
        """
        source = span_windows.make_window_source(self, rows, fields, packer)
        targets = counts = None
        if labeled:
            answers = [
                span_windows.answer_tokens(row["label"][0], text, offsets)
                for row, text, offsets in zip(
                    rows, source.texts, source.offsets, strict=True
                )
            ]
            targets = np.array(
                [w.target(answers[w.row]) for w in source.windows], "int32"
            ).reshape(-1, 2)
            counts = (targets[:, 0] != IGNORED).astype("int32")
        ids = [window.token_ids for window in source.windows]
        segments = None
        if packer.special_tokens.has_segments:
            second = packer.special_tokens.second_segment
            segments = [
                second * (np.arange(len(w.token_ids)) >= w.begin)
                for w in source.windows
            ]
        pad_id = packer.special_tokens.pad
        return Examples(ids, segments, targets, counts, source, pad_id=pad_id)

    def loss(self, targets: Tensor, outputs: Tensor) -> Tensor:
        """Returns the cross-entropy of each example, `(batch,)`.

        It is the mean of the cross-entropies of the answer's first and last
        token, or 0 for examples without a target.
        """
        has_target = targets[:, 0] != IGNORED
        losses = [
            ops.sparse_categorical_crossentropy(
                ops.where(has_target, targets[:, end], 0),
                outputs[..., end],
                from_logits=True,
            )
            for end in (0, 1)
        ]
        return ops.where(has_target, (losses[0] + losses[1]) / 2, 0.0)

    def predictions(
        self, outputs: Tensor, source: span_windows.WindowSource
    ) -> list[list[tuple[str, int, float]]]:
        """Returns the best answers of each row.

        Returns:
            List with a list of `(text, begin, score)` for each row, best answer
            first. `begin` is the index of the answer's first character. A row's
            list is empty if no span was found in its windows.
        """
        found = [[] for _ in source.texts]
        for output, window in zip(outputs, source.windows, strict=True):
            found[window.row] += self._candidates(np.asarray(output), window)
        return [
            self._best(candidates, text, offsets)
            for candidates, text, offsets in zip(
                found, source.texts, source.offsets, strict=True
            )
        ]

    def _candidates(
        self, output: np.ndarray, window: span_windows.Window
    ) -> list[tuple[float, int, int]]:
        """Returns the best spans of a window, each as `(score, first, last)`.

        `first` and `last` are the indices of the span's first and last token
        in the whole text.
        """
        logits = output[window.begin :][: window.length].astype("float64")
        firsts, lasts = (
            np.argsort(-logits[:, end], kind="stable")[: self.num_best]
            for end in (0, 1)
        )
        return [
            (
                logits[first, 0] + logits[last, 1],
                window.first + int(first),
                window.first + int(last),
            )
            for first in firsts
            for last in lasts
            if 0 <= last - first < self.max_answer_tokens
            if window.counts(first, last)
        ]

    def _best(
        self,
        candidates: list[tuple[float, int, int]],
        text: str,
        offsets: np.ndarray,
    ) -> list[tuple[str, int, float]]:
        """Returns the best answers of a row, each as `(text, begin, score)`.

        Of candidates with the same text, only the best is returned. `offsets`
        has the start and end of each token in `text`; see `WindowSource`.
        """
        answers = {}
        for score, first, last in sorted(candidates, key=lambda c: -c[0]):
            begin, end = int(offsets[first][0]), int(offsets[last][1])
            answers.setdefault(text[begin:end], (begin, score))
            if len(answers) == self.num_best:
                break
        return [(text, *rest) for text, rest in answers.items()]

    def compare(
        self,
        outputs: Tensor,
        targets: Tensor,
        source: span_windows.WindowSource,
    ) -> dict[str, Any]:
        """Returns a dict with `target`, `predicted` and `probabilities`.

        They have the right answers of each row, the best predicted answer, and
        its probability among the best answers of the row. The predicted answer
        is `""` if no span was found.
        """
        found = [_decoded(a) for a in self.predictions(outputs, source)]
        return {
            "target": [
                [a["text"] for a in row["label"]] for row in source.rows
            ],
            "predicted": [row["answer"] for row in found],
            "probabilities": [
                row["best"][0]["probability"] if row["best"] else 0.0
                for row in found
            ],
        }

    @classmethod
    def score(
        cls, names: Iterable[str], compared: dict[str, Any]
    ) -> dict[str, float]:
        """Computes metrics of answers over a whole set.

        See `span_metrics.compute_span_metrics`.
        """
        return span_metrics.compute_span_metrics(names, *metrics.both(compared))

    def decode(
        self, outputs: Tensor, source: span_windows.WindowSource
    ) -> list[dict[str, Any]]:
        """Returns a list with a dict for each row.

        In the dict, `answer` is the best answer, and `answer_start` the index
        of its first character in the text. `best` lists the best answers. Their
        probabilities sum to 1.
        """
        return [
            _decoded(answers) for answers in self.predictions(outputs, source)
        ]

    def explained(
        self,
        output: np.ndarray,
        source: span_windows.WindowSource,
        label: str | None = None,
    ) -> list[Explained]:
        """Returns the best answer, or `[]` if the text has no tokens.

        `label` must be `None`.
        """
        explained.check_no_label(label)
        (window,) = source.windows
        candidates = self._candidates(output, window)
        if not candidates:
            return []
        _, first, last = max(candidates, key=lambda found: found[0])
        offsets = source.offsets[0]
        name = source.texts[0][offsets[first][0] : offsets[last][1]]
        # `window.first` is 0, because there is only one window.
        ends = window.begin + first, window.begin + last
        return [Explained(name, "logits", explained.span_score, ends)]


def _decoded(answers: list[tuple[str, int, float]]) -> dict[str, Any]:
    if not answers:
        return {"answer": "", "answer_start": None, "best": []}
    scores = np.array([score for _, _, score in answers])
    return {
        "answer": answers[0][0],
        "answer_start": answers[0][1],
        "best": [
            {
                "answer": text,
                "answer_start": begin,
                "probability": round(float(probability), 6),
            }
            for (text, begin, _), probability in zip(
                answers, scipy.special.softmax(scores), strict=True
            )
        ],
    }
