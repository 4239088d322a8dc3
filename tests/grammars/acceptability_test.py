"""Labels of the acceptability texts, against rules that know no pattern."""

import pytest

from tests.grammars import acceptability
from tests.grammars import lexicons
from tf_adapters.data.rows import generated


def _all_forms(slots):
    return lexicons.entries(acceptability.GRAMMAR, slots)


NOUNS = _all_forms("boy/boys girl/girls") + _all_forms("king/kings")
SINGULAR, PLURAL = (set(column) for column in zip(*NOUNS, strict=True))
ACTIONS = _all_forms("wait/waits/waited")
WAIT, WAITS, WAITED = (set(column) for column in zip(*ACTIONS, strict=True))
TAKE, TAKEN = map(set, zip(*_all_forms("take/taken"), strict=True))
ADJECTIVES = {adj for (adj,) in _all_forms("tall")}
DETERMINERS = {
    "this": SINGULAR,
    "every": SINGULAR,
    "each": SINGULAR,
    "those": PLURAL,
    "many": PLURAL,
    "two": PLURAL,
}
AUXILIARIES = {
    "has": TAKEN,
    "have": TAKEN,
    "had": TAKEN,
    "not": TAKE,
    "will": TAKE | WAIT,
    "may": WAIT,
    "must": TAKE,
}


def _is_right(sentence):
    """Applies every rule that a sentence gives occasion to."""
    words = sentence.rstrip(".?").lower().split()
    nouns = [word for word in words if word in SINGULAR | PLURAL]
    return all(
        rule(words, nouns[0] in PLURAL)
        for rule in (_agreement, _determiner, _auxiliary, _order, _inversion)
    )


def _agreement(words, plural):
    wrong = {"is", "himself"} if plural else {"are", "themselves"}
    if "often" in words:
        wrong |= WAITS if plural else WAIT
    return not wrong & set(words)


def _determiner(words, plural):
    for i, word in enumerate(words):
        if word in DETERMINERS:
            noun = next(w for w in words[i:] if w in SINGULAR | PLURAL)
            return noun in DETERMINERS[word]
    return True


def _auxiliary(words, plural):
    verbs = [w for w in words if w in TAKE | TAKEN]
    auxiliary = next((w for w in words if w in AUXILIARIES), None)
    return not verbs or verbs[-1] in AUXILIARIES[auxiliary]


def _order(words, plural):
    """Pronouns precede particles; adjectives precede nouns, or follow "is"."""
    particles = {p for _, p in _all_forms("turned/off")}
    for before, word in zip(words, words[1:], strict=False):
        if before in particles and word in ("it", "them"):
            return False
        if word in ADJECTIVES and before in SINGULAR | PLURAL:
            return "why" in words and words[words.index("why") + 1] == "the"
    return True


def _inversion(words, plural):
    """Only a question that stands by itself inverts subject and verb."""
    for i, word in enumerate(words):
        if word in ("when", "where", "why"):
            return (words[i + 1] != "the") == (i == 0)
    return True


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_label_follows_from_the_rules(split):
    for row in generated.read_rows("acceptability", split):
        assert row["label"] == int(_is_right(row["sentence"])), row
