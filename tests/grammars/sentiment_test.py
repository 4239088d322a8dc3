"""Labels of the sentiment texts, against a rule that knows no pattern."""

import pytest

from tests.grammars import lexicons
from tests.grammars import sentiment
from tf_adapters.data.rows import generated

POLARITY = {
    word: value
    for slots, value in (("good better", 1), ("bad worse", 0))
    for (word,) in lexicons.entries(sentiment.GRAMMAR, slots)
}
DENIALS = {"not", "no", "nobody", "nothing", "never"}
# What follows one of these, up to the next comma, is only conceded.
CONCESSIONS = ("although", "even if", "even though", "despite", "while", "in")


def _verdict(sentence):
    """The words that say what the writer thinks of the work as a whole."""
    text = sentence.rstrip(".!").lower().replace("in spite of", "despite")
    text = text.replace("in the end", "").replace("no one who sees", "nobody")
    for cut in (" despite ", ", however "):
        text = text.split(cut)[0] if not text.startswith(cut[1:]) else text
    clauses = text.split(", ")
    kept = [c for c in clauses if not c.startswith(CONCESSIONS)]
    return kept[-1].split()


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_label_follows_from_denial_and_concession(split):
    for row in generated.read_rows("sentiment", split):
        words = _verdict(row["sentence"])
        (value,) = [POLARITY[word] for word in words if word in POLARITY]
        denied = bool(DENIALS & set(words))
        assert row["label"] == value ^ denied, row
