"""Generates all kinds of predicted answers, for metrics."""

import unicodedata

_WORDS = ("the", "a", "An", "in", "1,024", "U.S.", "naïve", "東京", "e-mail")


def _span(gold, text, generator):
    words = text.split()
    first = generator.integers(len(words))
    return " ".join(words[first : first + generator.integers(1, 8)])


def _part(gold, text, generator):
    words = gold[-1].split()
    return " ".join(words[: max(1, len(words) // 2)])


def _around(gold, text, generator):
    place = max(0, text.find(gold[0]))
    return text[max(0, place - 12) : place + len(gold[0]) + 12]


def _shuffled(gold, text, generator):
    words = [*gold[0].split(), *generator.choice(_WORDS, 3)]
    return " ".join(generator.permutation(words))


def _decomposed(gold, text, generator):
    return unicodedata.normalize("NFD", gold[0])


def _ascii(gold, text, generator):
    decomposed = _decomposed(gold, text, generator)
    return decomposed.encode("ascii", "ignore").decode()


# From the gold answers, the text and a generator to a prediction.
KINDS = {
    "right": lambda gold, text, generator: gold[0],
    "another right one": lambda gold, text, generator: gold[-1],
    "empty": lambda gold, text, generator: "",
    "spaces": lambda gold, text, generator: " \t\u00a0\n",
    "punctuation": lambda gold, text, generator: "?! ... \u201c-\u201d",
    "ASCII punctuation": lambda gold, text, generator: "?!...,-_'\"",
    "articles": lambda gold, text, generator: "The a  AN the",
    "upper case": lambda gold, text, generator: gold[0].upper(),
    "folded case": lambda gold, text, generator: gold[0].casefold(),
    "with an article": lambda gold, text, generator: f"an {gold[0]}",
    "with punctuation": lambda gold, text, generator: (
        f"\u201c{gold[0]}!\u201d."
    ),
    "article by a hyphen": lambda gold, text, generator: f"the-{gold[0]}-a",
    "article by a dash": lambda gold, text, generator: (
        f"a\u2014{gold[0]}\u2019the"
    ),
    "article by a mark": lambda gold, text, generator: (
        f"a\u0301 {gold[0]} the\u00ad"
    ),
    "with spaces": lambda gold, text, generator: (
        "\u2003" + gold[0].replace(" ", "\u00a0 \t")
    ),
    "without spaces": lambda gold, text, generator: gold[0].replace(" ", ""),
    "twice": lambda gold, text, generator: f"{gold[0]} {gold[-1]}",
    "decomposed": _decomposed,
    "ASCII": _ascii,
    "part": _part,
    "around": _around,
    "shuffled": _shuffled,
    "span": _span,
    "text": lambda gold, text, generator: text,
}
