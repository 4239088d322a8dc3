"""Exact match and F1 of SQuAD v1.1 from their definitions. Imports nothing.

Rajpurkar et al. 2016, arXiv:1606.05250, section 6.1, and what its published
evaluation adds: case and white space do not count, and an answer that becomes
empty shares no word with any other. To be independent, this uses no regular
expressions, bags of words or floating point: characters and words are compared
one by one, and numbers are fractions.
"""

from fractions import Fraction
import string

ARTICLES = ("a", "an", "the")


def words_of(text):
    """Returns lowercase words without punctuation and articles."""
    kept = [c for c in text.lower() if c not in string.punctuation]
    # An article is a whole run of letters, digits and underscores, also where
    # something else than a space ends it.
    found, run = [], ""
    for character in [*kept, " "]:
        if character.isalnum() or character == "_":
            run += character
        else:
            found += [" " if run in ARTICLES else run, character]
            run = ""
    return "".join(found).split()


def exact_match(gold, answer):
    return Fraction(words_of(gold) == words_of(answer))


def f1(gold, answer):
    gold, answer = words_of(gold), words_of(answer)
    rest, common = list(gold), 0
    for word in answer:
        if word in rest:
            rest.remove(word)
            common += 1
    if not common:
        return Fraction(0)
    precision, recall = (
        Fraction(common, len(answer)),
        Fraction(common, len(gold)),
    )
    return 2 * precision * recall / (precision + recall)


def means(golds, answers):
    """Returns the mean exact match and F1, each with the best gold answer."""
    return tuple(
        Fraction(
            sum(
                max(measure(one, answer) for one in gold)
                for gold, answer in zip(golds, answers, strict=True)
            ),
            len(golds),
        )
        for measure in (exact_match, f1)
    )
