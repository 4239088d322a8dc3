"""Exact match and F1 of answers, as defined by SQuAD v1.1.

The metrics ignore punctuation and articles. F1 compares bags of words. Each
question is scored with the gold answer that gives the highest score (Rajpurkar
et al. 2016, arXiv:1606.05250, section 6.1). As in the official evaluation, case
and spaces are ignored too. Two answers that are empty after this normalization
match exactly, but have an F1 of 0.
"""

import collections
from collections.abc import Iterable
import re
import string

from tf_adapters.common.checks import check_known
from tf_adapters.common.errors import UserError

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize(text: str) -> str:
    """Normalizes an answer to lowercase words with single spaces.

    Punctuation and articles are removed.
    """
    text = text.lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", text).split())


def exact_match(gold: str, answer: str) -> float:
    """Returns 1.0 if two answers are equal after `normalize`, else 0.0."""
    return float(normalize(gold) == normalize(answer))


def answer_f1(gold: str, answer: str) -> float:
    """Returns the F1 of the words of an answer, given a gold answer."""
    golds, answers = normalize(gold).split(), normalize(answer).split()
    common = collections.Counter(golds) & collections.Counter(answers)
    # Harmonic mean of common/gold and common/answer.
    return 2 * common.total() / max(1, len(golds) + len(answers))


SPAN_METRICS = {"answer_f1": answer_f1, "exact_match": exact_match}


def compute_span_metrics(
    names: Iterable[str], gold: list[list[str]], answers: list[str]
) -> dict[str, float]:
    """Computes metrics of answers over a whole set.

    Args:
        names: Iterable of keys of `SPAN_METRICS`.
        gold: List with a list of gold answers for each question.
        answers: List with an answer for each question, `""` if there is none.

    Returns:
        Dict from each name to the mean over all questions, from 0 to 1.

    Raises:
        UserError: If a name is unknown, or a question has no gold answer.
    """
    for name in names:
        check_known("metric", name, sorted(SPAN_METRICS))
    if not gold or len(gold) != len(answers) or not all(gold):
        raise UserError(
            "Metrics of answers need at least one question, and for each one "
            f"gold answer or more and an answer. Received: {len(gold)} "
            f"questions, {len(answers)} answers."
        )
    return {
        name: sum(of_each(name, gold, answers)) / len(gold) for name in names
    }


def of_each(
    name: str, gold: list[list[str]], answers: list[str]
) -> list[float]:
    """Returns the values of one metric, as a list with one for each question.

    Args:
        name: A key of `SPAN_METRICS`.
        gold: See `compute_span_metrics`.
        answers: See `compute_span_metrics`.
    """
    return [
        max(SPAN_METRICS[name](one, answer) for one in golds)
        for golds, answer in zip(gold, answers, strict=True)
    ]
