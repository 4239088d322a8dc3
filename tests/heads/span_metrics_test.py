"""Compares exact match and F1 of answers with a reference."""

import itertools

import numpy as np
import pytest

from tests import made_up_answers
from tests.references import squad_metrics as reference
from tf_adapters.heads import span_metrics

# Gold answers, the answer, exact match and F1. Where the definition leaves a
# case open, the numbers are those that its published evaluation gives.
CASES = [
    (["Denver Broncos"], "Denver Broncos", 1, 1),
    (["Denver Broncos"], "the denver broncos!", 1, 1),
    (["Denver Broncos"], "Broncos", 0, 2 / 3),
    (["a cat and the dog"], "an cat and dog", 1, 1),
    (["cat cat dog"], "cat dog dog", 0, 2 / 3),
    (["in 1966", "1966", "the 1966"], "1966.", 1, 1),
    (["x y", "y z w"], "y z", 0, 4 / 5),
    (["U.S."], "US", 1, 1),
    (["twenty-one"], "twenty one", 0, 0),
    (["anthem"], "them", 0, 0),
    (["$5"], "5", 1, 1),
    (["“Hi”"], "Hi", 0, 0),  # These quotes are no ASCII punctuation.
    (["Beyoncé"], "beyoncé", 1, 1),
    (["Beyoncé"], "Beyonce", 0, 0),
    (["x  y"], " x\u00a0y ", 1, 1),
    (["x"], "", 0, 0),
    (["x"], "...", 0, 0),
    (["the"], "", 1, 0),  # Nothing is left of either.
    (["!"], "a", 1, 0),
]


@pytest.mark.parametrize(("gold", "answer", "exact", "f1"), CASES)
def test_one_question(gold, answer, exact, f1):
    values = span_metrics.compute_span_metrics(
        ("exact_match", "answer_f1"), [gold], [answer]
    )
    assert values == {
        "exact_match": exact,
        "answer_f1": pytest.approx(f1, abs=1e-12),
    }


def test_questions_count_alike():
    gold, answers, exact, f1 = zip(*CASES, strict=True)
    values = span_metrics.compute_span_metrics(
        ("exact_match", "answer_f1"), gold, answers
    )
    assert values["exact_match"] == pytest.approx(sum(exact) / len(CASES))
    assert values["answer_f1"] == pytest.approx(sum(f1) / len(CASES))


@pytest.mark.parametrize(
    ("names", "gold", "answers", "message"),
    [
        (("f1",), [["x"]], ["x"], "Unknown metric `f1`.*answer_f1"),
        (("exact_match",), [["x"], []], ["x", "y"], "one gold answer"),
        (("exact_match",), [["x"]], [], "1 questions, 0 answers"),
        (("exact_match",), [], [], "0 questions"),
    ],
)
def test_what_has_no_metrics_is_refused(names, gold, answers, message):
    with pytest.raises(ValueError, match=message):
        span_metrics.compute_span_metrics(names, gold, answers)


_SUBJECTS = (
    "the Denver Broncos",
    "Beyoncé Knowles-Carter",
    "a U.S. senator",
    "Saint-Étienne's mayor",
    "an A–Z of “things”",
    "İstanbul",
    "Straße 12",
    "the the",
    "東京 タワー",
    "a",
    "e = m_c²",
    "$1,024.50",
    "The_Who",
)
_PLACES = (
    "in 1966",
    "at the Oval.",
    "on March 3, 1875",
    "with a cat",
    "...",
    "",
)


def _questions():
    """Returns 234 made-up questions: gold answers and a text for each."""
    found = []
    for number, (subject, place, form) in enumerate(
        itertools.product(_SUBJECTS, _PLACES, range(3))
    ):
        golds = [subject, f"{subject} {place}", f"{place}, {number} {subject}"]
        text = f"It was {subject} {place}, not an error. {subject.upper()} won!"
        found.append((golds[form:] if form else golds[:1], text))
    return found


@pytest.mark.parametrize("kind", made_up_answers.KINDS)
def test_made_up_predictions_have_the_references_metrics(kind):
    generator = np.random.default_rng(0)
    questions = _questions()
    assert len(questions) > 200
    make = made_up_answers.KINDS[kind]
    golds = [gold for gold, _ in questions]
    answers = [make(gold, text, generator) for gold, text in questions]
    for gold, answer in zip(golds, answers, strict=True):
        _assert_same([gold], [answer])
    _assert_same(golds, answers)


def _assert_same(golds, answers):
    exact, f1 = reference.means(golds, answers)
    values = span_metrics.compute_span_metrics(
        ("exact_match", "answer_f1"), golds, answers
    )
    assert values["exact_match"] == pytest.approx(float(exact), abs=1e-12)
    assert values["answer_f1"] == pytest.approx(float(f1), abs=1e-12)


def test_the_kinds_make_a_difference():
    """Their metrics differ from those of a constant answer."""
    generator = np.random.default_rng(0)
    questions = _questions()
    golds = [gold for gold, _ in questions]
    found = {
        kind: reference.means(golds, [make(*q, generator) for q in questions])
        for kind, make in made_up_answers.KINDS.items()
    }
    assert len(set(found.values())) > len(found) / 2
    assert found["right"][0] == 1 and found["span"][0] < 0.2
    assert 0 < found["empty"][0] < 0.1 and found["empty"][1] == 0


def test_the_reference_by_hand():
    for gold, answer, exact, f1 in CASES:
        found = reference.means([gold], [answer])
        assert tuple(map(float, found)) == pytest.approx((exact, f1))
