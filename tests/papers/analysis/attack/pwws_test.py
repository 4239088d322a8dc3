"""Tests the search for synonyms, on models with known answers."""

import numpy as np
import pandas as pd
import pytest
import scipy.special

from tf_adapters.papers.analysis.attack import attack
from tf_adapters.papers.analysis.attack import pwws

SEARCHES = list(pwws.SEARCHES.values())


def _run(search, victim, words, candidates, label=1):
    """Returns the result, and the texts that were sent to the model."""
    asked = []

    def score(pairs):
        texts = [text for _, text in pairs]
        asked.extend(texts)
        right = np.array([victim(text.split()) for text in texts])
        return np.stack([1 - right, right], axis=1)

    text = " ".join(words)
    started = search(text, words, label, candidates)
    (outcome,) = pwws.run_searches([started], score)
    return outcome, asked


@pytest.mark.parametrize("search", SEARCHES)
def test_one_word_decides(search):
    words = ["fine", "film", "tonight"]
    candidates = [["nice", "dreadful"], ["movie"], []]
    outcome, asked = _run(
        search,
        lambda words: 0.2 if "dreadful" in words else 0.9,
        words,
        candidates,
    )
    assert outcome.succeeded and outcome.was_correct
    assert outcome.text == "dreadful film tonight"
    assert (outcome.changed, outcome.words) == (1, 3)
    assert outcome.queries == len(asked)


@pytest.mark.parametrize(
    # The text as given; with three unknown tokens and, by the first rules, in
    # lower case; for each of two words a text with the candidate and, by the
    # first rules, one without change; at last a text for each of the three
    # words, or of the two with a candidate.
    ("search", "queries"),
    [(SEARCHES[0], 1 + 4 + 2 * 2 + 3), (SEARCHES[1], 1 + 3 + 2 + 2)],
)
def test_a_victim_that_never_yields(search, queries):
    words, candidates = ["fine", "film", "tonight"], [["nice"], ["movie"], []]
    outcome, asked = _run(search, lambda words: 0.9, words, candidates)
    assert not outcome.succeeded and outcome.was_correct
    assert outcome.queries == len(asked) == queries


@pytest.mark.parametrize("search", SEARCHES)
def test_a_text_without_words_withstands(search):
    outcome, _ = _run(search, lambda words: 0.9, [], [])
    assert (outcome.succeeded, outcome.words, outcome.queries > 0) == (
        False,
        0,
        True,
    )


def test_the_order_is_saliency_times_gain():
    """By hand: softmax of 0.1, 0.3, 0 (saliency) times 0.2, 0.1 and 0.05."""
    lowers = {"alpha2": 0.2, "beta2": 0.1, "gamma2": 0.05}
    unknown = [0.1, 0.3, 0.0]

    def victim(words):
        down = sum(lowers.get(word, 0) for word in words)
        down += sum(
            loss
            for word, loss in zip(words, unknown, strict=True)
            if word == "<UNK>"
        )
        return 0.9 - down

    words = ["alpha", "beta", "gamma"]
    outcome, asked = _run(
        pwws.search_openattack, victim, words, [[f"{w}2"] for w in words]
    )
    scores = scipy.special.softmax(unknown) * [0.2, 0.1, 0.05]
    order = [words[place] for place in np.argsort(-scores)]
    assert order == ["alpha", "beta", "gamma"]  # Saliency alone: beta first.
    assert asked[-3:] == [
        "alpha2 beta gamma",
        "alpha2 beta2 gamma",
        "alpha2 beta2 gamma2",
    ]
    assert not outcome.succeeded  # 0.9 - 0.35 is still above a half.


def test_what_a_text_was_wrong_about():
    """One program attacks it, away from the wrong class; the other skips it."""
    victim = {"bad": 0.3, "poor": 0.8, "<UNK>": 0.3}
    for search, attacked in zip(SEARCHES, (True, False), strict=True):
        outcome, _ = _run(
            search, lambda words: victim[words[0]], ["bad"], [["poor"]]
        )
        assert not outcome.was_correct
        assert (outcome.was_attacked, outcome.succeeded) == (attacked, attacked)


def test_a_line_is_the_mean_over_runs_of_the_same_pretraining():
    rates = {"success_of_all": [0.2, 0.4, 0.5], "success_of_correct": 0.1}
    table = pd.DataFrame({"pretraining_steps": [0, 0, 200], **rates})
    table = table.assign(method="full", texts=9, rules="openattack", tags="any")
    (axes,) = attack.Attack().draw(table).axes
    line = axes.get_lines()[0]
    assert list(line.get_xdata()) == [0, 200]
    assert list(line.get_ydata()) == pytest.approx([30, 50])


def test_only_textattack_keeps_a_word_that_gains_nothing():
    def victim(words):
        return 0.95 if "nice" in words else 0.9

    for search, changed in zip(SEARCHES, (1, 0), strict=True):
        outcome, _ = _run(search, victim, ["fine"], [["nice"]])
        assert outcome.changed == changed


def test_textattack_keeps_the_case_and_the_spaces_of_other_words():
    """A model of cased texts may not know them in lower case."""
    text = 'The "Fine" Film,\n tonight!'
    words = pwws.split_words(text, lower=False)
    candidates = [["nice"] if word == "Fine" else [] for word in words]
    search = pwws.search_textattack(text, words, 1, candidates)
    asked = []

    def score(pairs):
        asked.extend(text for _, text in pairs)
        right = np.array([0.2 if "nice" in text else 0.9 for _, text in pairs])
        return np.stack([1 - right, right], axis=1)

    (outcome,) = pwws.run_searches([search], score)
    assert outcome.text == 'The "nice" Film,\n tonight!'
    assert 'The "Fine" [UNK],\n tonight!' in asked
    # A stop word, in upper case.
    assert not any(text.startswith("[UNK]") for text in asked)


@pytest.mark.parametrize("search", SEARCHES)
def test_words_without_meaning_stay(search):
    outcome, _ = _run(
        search, lambda words: 0.2 if "teh" in words else 0.9, ["the"], [["teh"]]
    )
    assert not outcome.succeeded


def test_candidates_of_both_programs():
    lemmas = ["moving_picture", "Film", "film", "movie", "moving"]
    assert pwws.first_words(lemmas, "film") == ["moving", "movie"]
    assert pwws.single_words(lemmas, "film") == ["Film", "movie", "moving"]
    assert pwws.first_words(["exist"], "is") == []


def test_both_success_rates_by_hand():
    def outcome(succeeded, was_correct, was_attacked=True, queries=10):
        return pwws.AttackResult(
            "", succeeded, was_correct, was_attacked, queries, 4, 1
        )

    found = attack.attack_summary(
        [
            outcome(True, True),
            outcome(False, True, queries=20),
            outcome(True, False),
            outcome(False, False, was_attacked=False, queries=1),
            outcome(False, True, queries=30),
        ]
    )
    assert found["accuracy"] == pytest.approx(3 / 5)
    assert found["accuracy_under_attack"] == pytest.approx(2 / 5)
    assert found["success_of_all"] == pytest.approx(2 / 4)
    assert found["success_of_correct"] == pytest.approx(1 / 3)
    assert found["queries_per_text"] == pytest.approx((10 + 20 + 10 + 30) / 4)
    assert found["words_changed"] == pytest.approx(1 / 4)
