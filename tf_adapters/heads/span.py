"""An answer as a span of a text."""

import dataclasses

from keras import ops
import numpy as np
import scipy.special

from tf_adapters.data.encoded import IGNORED
from tf_adapters.data.encoded import Encoded
from tf_adapters.heads import metrics
from tf_adapters.heads import span_metrics
from tf_adapters.heads import span_windows
from tf_adapters.heads.head import Head
from tf_adapters.heads.head import register
from tf_adapters.heads.linear import HiddenLayer
from tf_adapters.heads.linear import hidden_options
from tf_adapters.heads.tokens import TokenLayer


@register("span")
@dataclasses.dataclass(frozen=True)
class Span(Head):
    """The first and the last token of the answer (Devlin et al. 2019, 4.2).

    A text that is too long becomes windows that overlap; a window without
    the whole answer has the first token, `[CLS]`, as its target. Defaults are
    those of the paper's code (google-research/bert, run_squad.py).

    Attributes:
        stride: Tokens between the beginnings of two windows, at most. Fewer
            where windows would overlap by less than `max_answer_tokens`.
        max_question_tokens: Longest question; what is longer is cut.
        max_answer_tokens: Longest answer.
        num_best: Best beginnings, ends and answers that are looked at.
        dropout_rate: Dropout before the linear layer. The code has none;
            defaults to 0.
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

    def make_layer(self):
        """Returns the layer from encoder outputs to two logits a token."""
        return TokenLayer(
            2, self.dropout_rate, **hidden_options(self), name="head"
        )

    def encode(self, rows, fields, packer, labelled=True):
        """Returns an example for each window of each text.

        Args:
            rows: List of dicts.
            fields: The keys of the question and of the text.
            packer: `TextPacker`.
            labelled: Whether rows have answers. Training takes the first; one
                that the text does not have at its place trains nothing.
        """
        source = span_windows.make_window_source(self, rows, fields, packer)
        targets = counts = None
        if labelled:
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
        return Encoded(ids, segments, targets, counts, source)

    def loss(self, targets, outputs):
        """Returns the mean of both ends' cross-entropies, `(batch,)`."""
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

    def predictions(self, outputs, source):
        """Returns the best answer to each row, as `(text, begin, score)`s.

        The first is the best; there are none where no window has one.
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

    def _candidates(self, output, window):
        """Returns the window's best spans as (score, first, last) tokens."""
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
            if window.is_widest[first]
            for last in lasts
            if 0 <= last - first < self.max_answer_tokens
        ]

    def _best(self, candidates, text, offsets):
        """Returns the answers with the highest scores, each text once."""
        answers = {}
        for score, first, last in sorted(candidates, key=lambda c: -c[0]):
            begin, end = int(offsets[first][0]), int(offsets[last][1])
            answers.setdefault(text[begin:end], (begin, score))
            if len(answers) == self.num_best:
                break
        return [(text, *rest) for text, rest in answers.items()]

    def compare(self, outputs, targets, source):
        """Returns each row's right answers and its best one, `""` for none.

        `probabilities` has how likely that one is among those looked at.
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
    def score(cls, names, compared):
        """Returns metrics over a whole set, see `span_metrics.compute`."""
        return span_metrics.compute_span_metrics(names, *metrics.both(compared))

    def decode(self, outputs, source):
        """Returns one dict for each row, for people and JSON.

        `answer` and `answer_start` are the best answer and its place in the
        text, `best` all that were looked at with their probabilities among
        them.
        """
        return [
            _decoded(answers) for answers in self.predictions(outputs, source)
        ]


def _decoded(answers):
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
