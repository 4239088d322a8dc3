"""What a small template grammar is, and how words are drawn for it."""

import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class Lexicon:
    """Words of each split, and the slots that some of them fill.

    There is white space between words, `/` between the forms of one word, and
    `~` stands for a space within.

    Attributes:
        slots: A word for each that is drawn: the names of its forms' slots.
        train, validation, test: The words of a split.
        is_shuffled: Whether the forms of a word change places, too.
    """

    slots: str
    train: str
    validation: str
    test: str
    is_shuffled: bool = False

    def entries(self, split):
        """Returns a list of forms for each word of a split."""
        return _forms(getattr(self, split))

    def draw(self, rng, split):
        """Returns a dict from slot to text, of different words."""
        slots, entries = _forms(self.slots), self.entries(split)
        found = {}
        for names, entry in zip(slots, _shuffled(rng, entries), strict=False):
            forms = _shuffled(rng, entry) if self.is_shuffled else entry
            found.update(zip(names, forms, strict=True))
        return found


def _forms(text):
    return [word.replace("~", " ").split("/") for word in text.split()]


def _shuffled(rng, entries):
    return [entries[i] for i in rng.permutation(len(entries))]


@dataclasses.dataclass(frozen=True)
class Grammar:
    """Sentence patterns and the words that fill them.

    Attributes:
        text_fields: Names of a row's texts, one or two.
        patterns: Maps a split to its patterns. A pattern holds, for each label
            id in order, one template for each text field. Patterns under
            `"validation"` and `"test"` are those that training never shows.
        lexicons: The `Lexicon`s that fill the slots of the templates, in the
            order in which they are drawn from.
    """

    text_fields: tuple[str, ...]
    patterns: dict[str, tuple]
    lexicons: tuple[Lexicon, ...]

    def draw_words(self, rng, split):
        """Returns the words of one group, a dict from slot to text."""
        found = {}
        for lexicon in self.lexicons:
            found |= lexicon.draw(rng, split)
        return found

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


def _sentence(text):
    """Starts with a capital, and has "an" before a vowel."""
    text = re.sub(r"\b([Aa])(?= [aeiou])", r"\1n", text)
    return text[0].upper() + text[1:]
