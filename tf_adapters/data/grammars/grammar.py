"""What a small template grammar is, and how words are drawn for it."""

from collections.abc import Callable
import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class Grammar:
    """Sentence patterns and the words that fill them.

    Attributes:
        text_fields: Names of a row's texts, one or two.
        patterns: Maps a split to its patterns. A pattern holds, for each label
            id in order, one template for each text field. Patterns under
            `"validation"` and `"test"` are those that training never shows.
        draw_words: Maps a NumPy generator and a split to the words of one
            group: a dict from slot names to words of that split.
    """

    text_fields: tuple[str, ...]
    patterns: dict[str, tuple]
    draw_words: Callable

    def fill(self, pattern, words):
        """Returns the texts of each label, with the words in their slots."""
        return [
            tuple(_sentence(text.format(**words)) for text in texts)
            for texts in pattern
        ]

    def row(self, label, texts):
        """Returns one row: the texts by field name, and the label's id."""
        return {
            **dict(zip(self.text_fields, texts, strict=True)),
            "label": label,
        }


def words(text):
    """Splits a word list at white space; `~` stands for a space in a word."""
    return [word.replace("~", " ") for word in text.split()]


def forms(text):
    """Splits lines into tuples of the forms of one word, such as `dog/dogs`."""
    return [tuple(word.split("/")) for word in words(text)]


def sample(rng, entries, count):
    """Returns `count` different entries, in random order."""
    return [entries[i] for i in rng.permutation(len(entries))[:count]]


def slots(names, entries):
    """Returns a dict from the names, separated by spaces, to the entries."""
    return dict(zip(names.split(), entries, strict=True))


def _sentence(text):
    """Starts with a capital, and has "an" before a vowel."""
    text = re.sub(r"\b([Aa])(?= [aeiou])", r"\1n", text)
    return text[0].upper() + text[1:]
