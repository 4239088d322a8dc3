"""Exact match and F1 by hand, for every kind of answer."""

import pytest

from tf_adapters import span_metrics

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
    values = span_metrics.compute(
        ("exact_match", "answer_f1"), [gold], [answer]
    )
    assert values == {
        "exact_match": exact,
        "answer_f1": pytest.approx(f1, abs=1e-12),
    }


def test_questions_count_alike():
    gold, answers, exact, f1 = zip(*CASES, strict=True)
    values = span_metrics.compute(("exact_match", "answer_f1"), gold, answers)
    assert values["exact_match"] == pytest.approx(sum(exact) / len(CASES))
    assert values["answer_f1"] == pytest.approx(sum(f1) / len(CASES))


@pytest.mark.parametrize(
    ("names", "gold", "answers", "message"),
    [
        (("f1",), [["x"]], ["x"], "answer_f1.*Received: .*f1"),
        (("exact_match",), [["x"], []], ["x", "y"], "one gold answer"),
        (("exact_match",), [["x"]], [], "1 questions, 0 answers"),
        (("exact_match",), [], [], "0 questions"),
    ],
)
def test_what_has_no_metrics_is_refused(names, gold, answers, message):
    with pytest.raises(ValueError, match=message):
        span_metrics.compute(names, gold, answers)
