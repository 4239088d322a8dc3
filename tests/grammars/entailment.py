"""The grammar of `entailment`: entailment, neutral or contradiction.

Premise and hypothesis differ by one of four inferences: who did what to whom
(active and passive), quantifiers over a category and a narrower one, "and" and
"or", and comparisons with their opposites. Words alone do not decide any of
them: "not" occurs under every label, in the premise and in the hypothesis.
"""

from tests.grammars.grammar import Grammar
from tests.grammars.grammar import Lexicon


def _from(premise, entailed, neutral, contradicted):
    """Returns three pairs, a premise with a hypothesis for each label."""
    return tuple((premise, h) for h in (entailed, neutral, contradicted))


def _quantifier(quantifier, opposite, upward):
    """Returns three pairs about quantified categories, one for each label.

    Args:
        quantifier: Text before "the" in the premise.
        opposite: Text before "the" in the contradicting hypothesis.
        upward: Whether the premise entails the same of the wider category. If
            not, it entails the same of the narrower one.
    """
    start, end = ("{dogs}", "{animals}") if upward else ("{animals}", "{dogs}")
    premise = f"{quantifier} the {start} {{were_outside}}."
    conclusion = f"{quantifier} the {end} {{were_outside}}."
    return (
        (premise, conclusion),
        (conclusion, premise),
        (premise, f"{opposite} the {start} {{were_outside}}."),
    )


# A pattern is three pairs of premise and hypothesis, in the order of labels.
_ROLES = {
    "train": (
        _from(
            "The {a} {thanked} the {b}.",
            "The {b} was {thanked} by the {a}.",
            "The {a} was {thanked} by the {b}.",
            "The {b} was not {thanked} by the {a}.",
        ),
        _from(
            "The {a} did not {thank} the {b}.",
            "The {b} was not {thanked} by the {a}.",
            "The {a} was not {thanked} by the {b}.",
            "The {b} was {thanked} by the {a}.",
        ),
        _from(
            "The {b} was {thanked} by the {a}.",
            "The {a} {thanked} the {b}.",
            "The {b} did not {thank} the {a}.",
            "The {a} did not {thank} the {b}.",
        ),
        _from(
            "The {b} was not {thanked} by the {a}.",
            "The {a} did not {thank} the {b}.",
            "The {b} {thanked} the {a}.",
            "The {a} {thanked} the {b}.",
        ),
    ),
    "validation": (
        _from(
            "It was the {a} who {thanked} the {b}.",
            "The {b} was {thanked} by the {a}.",
            "The {a} was {thanked} by the {b}.",
            "The {b} was not {thanked} by the {a}.",
        ),
    ),
    "test": (
        _from(
            "The {b} whom the {a} {thanked} went home.",
            "The {a} {thanked} the {b}.",
            "The {b} {thanked} the {a}.",
            "The {a} did not {thank} the {b}.",
        ),
    ),
}

_QUANTIFIERS = {
    "train": (
        _quantifier("Some of", "None of", upward=True),
        _quantifier("None of", "Some of", upward=False),
        _quantifier("All of", "Not all of", upward=False),
        _quantifier("Not all of", "All of", upward=True),
    ),
    "validation": (_quantifier("Several of", "None of", upward=True),),
    "test": (_quantifier("Absolutely all", "Not all of", upward=False),),
}

_CONNECTIVES = {
    "train": (
        _from(
            "{name} {bought} {x} and {y}.",
            "{name} {bought} {y}.",
            "{name} {bought} {z}.",
            "{name} did not {buy} {y}.",
        ),
        _from(
            "{name} did not {buy} {x} or {y}.",
            "{name} did not {buy} {y}.",
            "{name} did not {buy} {z}.",
            "{name} {bought} {y}.",
        ),
        (
            ("{name} {bought} {x}.", "{name} {bought} {x} or {y}."),
            ("{name} {bought} {x} or {y}.", "{name} {bought} {x}."),
            ("{name} did not {buy} {x} or {y}.", "{name} {bought} {x}."),
        ),
        (
            ("{name} {bought} {x} and {y}.", "{name} {bought} {y} or {x}."),
            ("{name} {bought} {x}.", "{name} {bought} {x} and {y}."),
            ("{name} did not {buy} {x}.", "{name} {bought} {x} and {y}."),
        ),
    ),
    "validation": (
        (
            ("{name} {bought} both {x} and {y}.", "{name} {bought} {y}."),
            ("{name} {bought} either {x} or {y}.", "{name} {bought} {y}."),
            ("{name} {bought} neither {x} nor {y}.", "{name} {bought} {y}."),
        ),
    ),
    "test": (
        (
            ("{name} {bought} {x}, and also {y}.", "{name} {bought} {y}."),
            ("{name} {bought} {x}, or maybe {y}.", "{name} {bought} {y}."),
            ("{name} {bought} {x}, but not {y}.", "{name} {bought} {y}."),
        ),
    ),
}

_COMPARISONS = {
    "train": (
        _from(
            "The {a} {is_taller} the {b}.",
            "The {b} {is_shorter} the {a}.",
            "The {a} {is_shorter} the {c}.",
            "The {b} {is_taller} the {a}.",
        ),
        _from(
            "The {a} {is_taller} the {b} and the {c}.",
            "The {a} {is_taller} the {c}.",
            "The {b} {is_taller} the {c}.",
            "The {c} {is_taller} the {a}.",
        ),
    ),
    "validation": (
        _from(
            "Like the {a}, the {b} {is_taller} the {c}.",
            "The {a} {is_taller} the {c}.",
            "The {a} {is_taller} the {b}.",
            "The {c} {is_taller} the {a}.",
        ),
    ),
    "test": (
        _from(
            "The {a} {is_taller} the {b}, who {is_taller} the {c}.",
            "The {c} {is_shorter} the {a}.",
            "The {a} {is_taller} the {d}.",
            "The {c} {is_taller} the {b}.",
        ),
    ),
}


_LEXICONS = (
    Lexicon(
        "a b c d",
        train="doctor lawyer nurse teacher farmer student waiter soldier "
        "singer painter pilot baker judge sailor tailor guard",
        validation="actor driver dentist poet gardener plumber",
        test="senator engineer librarian chef coach banker",
    ),
    Lexicon(
        "x y z",
        train="a~chair a~table a~lamp a~clock a~bed a~mirror a~desk a~shelf",
        validation="a~sofa a~box a~ladder a~bench",
        test="a~bicycle a~kettle a~radio a~guitar",
    ),
    Lexicon(
        "thank/thanked",
        train="thank/thanked praise/praised blame/blamed invite/invited "
        "visit/visited help/helped call/called follow/followed warn/warned "
        "interview/interviewed",
        validation="ignore/ignored photograph/photographed push/pushed "
        "welcome/welcomed",
        test="insult/insulted rescue/rescued applaud/applauded hire/hired",
    ),
    Lexicon(
        "buy/bought",
        train="buy/bought find/found paint/painted need/needed sell/sold",
        validation="clean/cleaned bring/brought",
        test="steal/stole repair/repaired",
    ),
    Lexicon(
        "dogs/animals",
        train="dogs/animals roses/flowers apples/fruits hammers/tools "
        "violins/instruments sparrows/birds beetles/insects cars/vehicles "
        "novels/books rubies/stones",
        validation="horses/mammals salmon/fish oaks/trees swords/weapons "
        "shirts/clothes rings/jewels",
        test="snakes/reptiles potatoes/vegetables sandals/shoes "
        "dolls/toys castles/buildings ferries/ships",
    ),
    Lexicon(
        "were_outside",
        train="were~outside were~white were~old were~tiny disappeared "
        "were~heavy were~beautiful fell",
        validation="were~missing were~brown got~wet were~ugly were~lost",
        test="were~dirty were~grey vanished were~rare were~gone",
    ),
    Lexicon(
        "name",
        train="Anna Peter Maria John Laura David Emma Robert",
        validation="Alice Henry Sarah George",
        test="Julia Martin Sophie Thomas",
    ),
    Lexicon(
        "is_taller/is_shorter",
        train="is~taller~than/is~shorter~than is~older~than/is~younger~than "
        "arrived~before/arrived~after lives~above/lives~below "
        "earns~more~than/earns~less~than",
        validation="is~richer~than/is~poorer~than "
        "runs~faster~than/runs~slower~than",
        test="is~stronger~than/is~weaker~than "
        "woke~up~earlier~than/woke~up~later~than",
        is_shuffled=True,
    ),
)


GRAMMAR = Grammar(
    text_fields=("premise", "hypothesis"),
    patterns={
        split: tuple(
            pattern
            for kind in (_ROLES, _QUANTIFIERS, _CONNECTIVES, _COMPARISONS)
            for pattern in kind[split]
        )
        for split in ("train", "validation", "test")
    },
    lexicons=_LEXICONS,
)
