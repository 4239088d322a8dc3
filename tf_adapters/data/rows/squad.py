"""Parses SQuAD v1.1's JSON, and the answers in rows."""

import numbers
from typing import Any

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown
from tf_adapters.common.text_files import parse_json


def parse_squad(text: str) -> list[tuple[int, dict[Any, Any]]]:
    """Parses SQuAD's format (Rajpurkar et al. 2016, arXiv:1606.05250).

    Args:
        text: Content of a file such as `train-v1.1.json`.

    Returns:
        List of pairs `(number, question)` in the order of the file. Numbers
        start at 1. A question is a dict with `id`, `question`, `context`, and
        `answers` if there are any.

    Raises:
        UserError: If the text is not in SQuAD's format.
    """
    try:
        articles = parse_json(text)["data"]
        questions = [
            {**question, "context": paragraph["context"]}
            for article in articles
            for paragraph in article["paragraphs"]
            for question in paragraph["qas"]
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            "not SQuAD's format, an object with `data`, a list of articles "
            f"with `paragraphs` ({type(error).__name__}: {cut(error)})"
        ) from error
    return list(enumerate(questions, 1))


def parse_answers(value: Any) -> list[dict[str, Any]] | None:
    """Returns answers as a list of dicts, or `None` if there are none.

    Args:
        value: List of dicts with `text` and `answer_start`, the index of the
            answer's first character; or, as in TensorFlow Datasets, a dict of
            two lists.

    Raises:
        UserError: If the value has neither format.
    """
    if isinstance(value, dict) and {"text", "answer_start"} <= set(value):
        value = _one_by_one(value["text"], value["answer_start"])
    if not value and value in (None, "", []):
        return None
    if not isinstance(value, list) or not all(map(_is_answer, value)):
        raise UserError(
            "answers must be a list of objects with `text` and the position "
            f"of its first character, `answer_start`; received {shown(value)}"
        )
    return [
        {"text": a["text"], "answer_start": int(a["answer_start"])}
        for a in value
    ]


def _one_by_one(texts: Any, starts: Any) -> list[dict[str, Any]]:
    """Combines lists of texts and start positions into a list of answers.

    Each answer is a dict with `text` and `answer_start`.
    """
    are_lists = isinstance(texts, list) and isinstance(starts, list)
    if not are_lists or len(texts) != len(starts):
        raise UserError(
            "answers must have as many `answer_start` as `text`, in two lists; "
            f"received {texts!r:.80} and {starts!r:.80}"
        )
    return [
        {"text": text, "answer_start": start}
        for text, start in zip(texts, starts, strict=True)
    ]


def _is_answer(answer: Any) -> bool:
    return (
        isinstance(answer, dict)
        and isinstance(answer.get("text"), str)
        and isinstance(answer.get("answer_start"), numbers.Integral)
    )
