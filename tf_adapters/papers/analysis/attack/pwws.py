"""Probability-weighted word saliency: a search for words that deceive a model.

Ren et al. 2019 (ACL, P19-1103). Words are replaced by synonyms until the
model's answer changes. The first word to be replaced has the highest product of
two numbers: how much the word matters (its saliency), and how much its best
synonym lowers the probability of the answer. Two programs (`SEARCHES`) search
by different rules, and define success rates differently.

A search is a generator that yields texts. Its caller sends back the model's
class probabilities for them. `run_searches` runs many searches at once, so that
one call of the model serves all of them. Searches are deterministic.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import re
from typing import Any

import numpy as np
import scipy.special
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS


@dataclasses.dataclass(frozen=True)
class AttackResult:
    """The result of the attack on one text.

    Attributes:
        text: The final text.
        succeeded: Whether the predicted class changed.
        was_correct: Whether the original text was classified correctly.
        was_attacked: Whether the text was attacked at all.
        queries: Number of texts sent to the model.
        words: Number of words.
        changed: Number of words that differ from the original.
    """

    text: str
    succeeded: bool
    was_correct: bool
    was_attacked: bool
    queries: int
    words: int
    changed: int


class _Text:
    """A text that is changed word by word. Counts queries to the model.

    `gaps` is the text before, between and after the words, by default spaces
    between them.
    """

    def __init__(self, words: Any, gaps: Any = None) -> None:
        self.original = words
        self.words = list(words)
        self.gaps = (
            gaps or ["", *[" "] * (len(words) - 1), ""][: len(words) + 1]
        )
        self.queries = 0

    def whole(self, words: Any) -> str:
        """Returns a text of words with the gaps of this one."""
        pairs = zip(words, self.gaps[1:], strict=True)
        return self.gaps[0] + "".join(word + gap for word, gap in pairs)

    def with_word(self, place: Any, word: str) -> str:
        """Returns the text with `word` instead of the word at index `place`."""
        return self.whole([*self.words[:place], word, *self.words[place + 1 :]])

    def ask(self, texts: Any) -> Iterator[Any]:
        """Yields texts, and returns the probabilities sent to the generator."""
        self.queries += len(texts)
        return (yield texts) if texts else np.zeros((0, 2))

    def result(
        self, succeeded: Any, was_correct: Any, was_attacked: bool = True
    ) -> "AttackResult":
        """Returns the `AttackResult` for the current words."""
        pairs = zip(self.original, self.words, strict=True)
        return AttackResult(
            self.whole(self.words),
            bool(succeeded),
            bool(was_correct),
            was_attacked,
            self.queries,
            len(self.words),
            sum(old != new for old, new in pairs),
        )


def search_openattack(
    row_text: Any, words: Any, label: Any, candidates: Any
) -> Iterator[Any]:
    """Searches by the rules of OpenAttack 2.1.1.

    Attacks every text, even if the model misclassifies the original. Each
    word's best synonym is chosen in the original text. Saliencies are
    normalized over all words, including stop words, which are not replaced.

    Args:
        row_text: The text as given.
        words: Its words in lower case.
        label: Index of the true class.
        candidates: List with a list of synonyms for each word.

    Yields:
        Lists of texts. The caller sends their probabilities `(texts, classes)`.

    Returns:
        `AttackResult`.
    """
    text = _Text(words)
    (given,) = yield from text.ask([row_text])
    target = int(np.argmax(given))
    if not words:
        return text.result(False, target == label)
    asked = [text.with_word(i, "<UNK>") for i in range(len(words))]
    *unknown, whole = yield from text.ask([*asked, " ".join(words)])
    saliency = np.array([whole[target] - row[target] for row in unknown])
    best = []
    for place, synonyms in enumerate(candidates):
        best.append((yield from _best(text, place, synonyms, target)))
    gains = np.array([gain for _, gain in best])
    scores = scipy.special.softmax(saliency) * gains
    for place in np.argsort(-scores, kind="stable"):
        if words[place] in ENGLISH_STOP_WORDS:
            continue
        text.words[place] = best[place][0]
        (now,) = yield from text.ask([" ".join(text.words)])
        if np.argmax(now) != target:
            return text.result(True, target == label)
    return text.result(False, target == label)


def _best(text: Any, place: Any, synonyms: Any, target: Any) -> Iterator[Any]:
    """Returns the synonym that lowers a class's probability most.

    Also returns the decrease. `place` is the word's index in the text, and
    `target` is the class. Without synonyms, returns the word itself and 0.
    """
    if not synonyms:
        return text.words[place], 0.0
    asked = [text.words[place], *synonyms]
    before, *after = yield from text.ask(
        [text.with_word(place, word) for word in asked]
    )
    least = int(np.argmin([row[target] for row in after]))
    return synonyms[least], before[target] - after[least][target]


def search_textattack(
    row_text: Any, words: Any, label: Any, candidates: Any
) -> Iterator[Any]:
    """Searches by the rules of TextAttack.

    Does not attack texts that are classified incorrectly, and ignores stop
    words. Replaces a word by the synonym that lowers the probability of the
    true class most in the current text, if any synonym lowers it. All other
    words keep their case, and the spaces between words are those of the text.

    The arguments, yields and returns are those of `search_openattack`, but
    `words` are as in the text.
    """
    text = _Text(words, _WORD.split(row_text))
    (given,) = yield from text.ask([row_text])
    if np.argmax(given) != label:
        return text.result(False, False, was_attacked=False)
    places = [
        place
        for place, word in enumerate(words)
        if word.lower() not in ENGLISH_STOP_WORDS
    ]
    asked = [text.with_word(place, "[UNK]") for place in places]
    unknown = yield from text.ask(asked)
    # The saliency omits the probability of the complete text: it is a constant,
    # which does not change the softmax.
    saliency = [-row[label] for row in unknown]
    gains = []
    for place in places:
        tried = yield from _tries(text, place, candidates[place])
        gains.append(1 - min((row[label] for row in tried), default=1.0))
    scores = scipy.special.softmax(saliency) * gains if places else []
    present = given[label]
    order = np.argsort(-np.array(scores), kind="stable")
    for place in (places[i] for i in order):
        tried = yield from _tries(text, place, candidates[place])
        if not len(tried):
            continue
        least = int(np.argmin(tried[:, label]))
        if tried[least, label] >= present:
            continue
        text.words[place] = candidates[place][least]
        present = tried[least, label]
        if np.argmax(tried[least]) != label:
            return text.result(True, True)
    return text.result(False, True)


def _tries(text: Any, place: Any, synonyms: Any) -> Iterator[Any]:
    """Replaces the word at index `place` by each of its synonyms.

    Returns the model's class probabilities `(synonyms, classes)`.
    """
    asked = [text.with_word(place, word) for word in synonyms]
    return np.asarray((yield from text.ask(asked)))


SEARCHES = {"openattack": search_openattack, "textattack": search_textattack}


def run_searches(
    searches: Sequence[Any], score: Callable[..., Any]
) -> list[Any]:
    """Runs several searches in parallel.

    Args:
        searches: List of generators, such as `search_openattack` returns.
        score: Function that takes a list of pairs (index of a search, text),
            and returns the model's probabilities `(pairs, classes)`. It is
            called with the next texts of all searches.

    Returns:
        List with the `AttackResult` of each search.
    """
    results, asked = [None] * len(searches), {}
    for place, search in enumerate(searches):
        asked[place] = next(search)
    while asked:
        pairs = [
            (place, text) for place, texts in asked.items() for text in texts
        ]
        answers = iter(score(pairs))
        for place, texts in list(asked.items()):
            answer = [next(answers) for _ in texts]
            try:
                asked[place] = searches[place].send(np.array(answer))
            except StopIteration as end:
                results[place] = end.value
                del asked[place]
    return results


_WORD = re.compile(r"\w+|[^\w\s]+")


def split_words(text: str, lower: bool = True) -> list[str]:
    """Returns a text's words and sequences of punctuation.

    Args:
        text: The text.
        lower: Whether to return them in lower case, `True` by default.
    """
    return _WORD.findall(text.lower() if lower else text)


_NEVER_REPLACED = ("be", "is", "are", "am")


def first_words(lemmas: Any, word: str) -> list[Any]:
    """Returns the synonyms that OpenAttack tries: first words of `lemmas`."""
    if word in _NEVER_REPLACED:
        return []
    found = (lemma.split("_")[0].lower() for lemma in lemmas)
    return [new for new in dict.fromkeys(found) if new != word]


def single_words(lemmas: Any, word: str) -> list[Any]:
    """Returns the synonyms that TextAttack tries: `lemmas` without phrases."""
    found = (lemma for lemma in lemmas if "_" not in lemma)
    return [new for new in dict.fromkeys(found) if new != word]
