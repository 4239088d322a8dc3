"""Template grammars, and how words are drawn for them."""

import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class Lexicon:
    """The words of each split, and the slots that they can fill.

    Words are separated by white space and the forms of a word by `/`. A `~`
    stands for a space within a form.

    Attributes:
        slots: Names of slots, in the same notation: an entry for each word to
            draw, with a slot for each of its forms.
        train, validation, test: The words of a split.
        is_shuffled: Whether the forms of a word are shuffled as well. Defaults
            to `False`.
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
        """Draws different words; returns a dict from slot to text."""
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
        patterns: Dict from split to patterns. For each label id in order, a
            pattern has one template for each text field. The patterns of
            `"validation"` and `"test"` do not occur in training.
        lexicons: The `Lexicon`s that fill the slots of the templates, in the
            order of drawing.
    """

    text_fields: tuple[str, ...]
    patterns: dict[str, tuple]
    lexicons: tuple[Lexicon, ...]

    def draw_words(self, rng, split):
        """Draws the words of one group; returns a dict from slot to text."""
        found = {}
        for lexicon in self.lexicons:
            found |= lexicon.draw(rng, split)
        return found

    def fill(self, pattern, words):
        """Fills a pattern's slots; returns a tuple of texts for each label."""
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
    """Capitalizes a sentence, and writes "an" before vowels."""
    text = re.sub(r"\b([Aa])(?= [aeiou])", r"\1n", text)
    return text[0].upper() + text[1:]
