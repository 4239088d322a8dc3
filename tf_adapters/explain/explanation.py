"""What an explanation of one answer holds."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import numpy as np

from tf_adapters.common import own_files
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut

_PICTURES = (".png", ".svg", ".pdf")


@dataclasses.dataclass(frozen=True)
class Variant:
    """The answer of a model from which adapters are left out.

    Attributes:
        name: Name of the variant, such as `"without block 1"`; `"complete"` for
            the model itself.
        answer: The answer, see `TextModel.answer`.
        scores: `(answers,)`. Scores of the answers of the complete model.

    Examples:
        >>> model = tf_adapters.TextModel(
        ...     encoder, tokenizer, labels=("negative", "positive")
        ... )
        >>> complete, without, *_ = model.explain(["a fine film"])[0].variants
        >>> without.name
        'without the adapter'
    """

    name: str
    answer: dict[str, Any]
    scores: np.ndarray


@dataclasses.dataclass(frozen=True)
class Explanation:
    """Why a model gives an answer to one text; see `TextModel.explain`.

    `print(explanation)` shows it as text. In a notebook it is shown as a page.

    Attributes:
        words: Tuple with the words of the text or texts, in the spelling of the
            tokenizer. Special tokens are words, too.
        answers: Tuple with the names of the explained answers: one class or
            number, several classes, or a tag for each word.
        score_name: What the scores of answers are: `"log-odds"` of classes and
            tags, the predicted `"number"`, or the sum of an answer's two
            `"logits"`.
        gradient: Array `(answers, words)`: the gradient of an answer's score
            times the vectors of a word's tokens. Positive numbers speak for the
            answer.
        left_out: Array `(answers, words)`: by how much an answer's score falls
            if a word is left out of the text. NaN for special tokens and for
            the words that an answer consists of.
        movements: Array `(blocks, words)`: how far a block's adapter moves the
            vectors of a word, relative to their length. It has no rows if the
            method adds nothing to blocks.
        variants: Tuple of `Variant`s: the complete model, the model without its
            adapter, without the adapters of all blocks, and without that of
            each block.
        members: Tuple with the names of a fusion's members. Empty for other
            methods.
        member_weights: Dict from `(block, place)` to an array `(words,
            members)` with the attention weights of a fusion's members.

    Examples:
        >>> model = tf_adapters.TextModel(
        ...     encoder, tokenizer, labels=("negative", "positive")
        ... )
        >>> explanation = model.explain(["a fine film"])[0]
        >>> explanation.words
        ('[CLS]', 'a', 'fine', 'film', '[SEP]')
        >>> explanation.left_out.shape
        (1, 5)
        >>> path = explanation.save("film.html")
    """

    words: tuple[str, ...]
    answers: tuple[str, ...]
    score_name: str
    gradient: np.ndarray
    left_out: np.ndarray
    movements: np.ndarray
    variants: tuple[Variant, ...]
    members: tuple[str, ...] = ()
    member_weights: dict[tuple[int, str], np.ndarray] = dataclasses.field(
        default_factory=dict
    )

    @property
    def has_several(self) -> bool:
        """Whether there are several answers, such as a tag for each word."""
        return len(self.answers) > 1

    @property
    def name_of_mean(self) -> str:
        """Name of the mean score of the answers, such as "mean log-odds"."""
        return (
            f"mean {self.score_name}" if self.has_several else self.score_name
        )

    @property
    def mean_member_weights(self) -> np.ndarray:
        """Array `(words, members)`: weights averaged over blocks and places."""
        return np.mean(list(self.member_weights.values()), axis=0)

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self, color: bool = False) -> str:
        """Returns the explanation as lines of text.

        Args:
            color: Whether to color words with the escape sequences of
                terminals. Defaults to `False`.
        """
        from tf_adapters.explain import terminal

        return terminal.to_text(self, color)

    def to_html(self) -> str:
        """Returns the explanation as an HTML page without scripts."""
        from tf_adapters.explain import page

        return page.to_html(self)

    def _repr_html_(self) -> str:
        return self.to_html()

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the explanation as a page or a picture.

        Args:
            path: Path that ends in `.html`, or in `.png`, `.svg` or `.pdf` for
                a picture, which needs Matplotlib.

        Returns:
            The path.

        Raises:
            UserError: If the path ends otherwise.
        """
        path = Path(path)
        suffix = path.suffix.lower()
        if suffix == ".html":
            content = self.to_html().encode()
        elif suffix in _PICTURES:
            from tf_adapters.explain import picture

            content = picture.to_bytes(self, suffix.removeprefix("."))
        else:
            raise UserError(
                f"An explanation is written as .html, {', '.join(_PICTURES)}. "
                f"Received: {cut(path)}"
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        own_files.replace_file(path, content)
        return path
