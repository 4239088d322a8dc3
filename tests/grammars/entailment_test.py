"""Labels of the entailment texts, against every possible world.

Each sentence is read as a condition on a small world. The hypothesis must hold
in all worlds where the premise holds, in some, or in none.
"""

import itertools
import re

import pytest

from tests.grammars import entailment
from tests.grammars import lexicons
from tf_adapters.data.rows import generated

KINDS = lexicons.entries(entailment.GRAMMAR, "dogs/animals")
NARROW = {kind for kind, _ in KINDS}
INVERSE = {
    first: second
    for pair in lexicons.entries(entailment.GRAMMAR, "is_taller/is_shorter")
    for first, second in (pair, pair[::-1])
}
QUANTIFIERS = {
    "Some of": lambda yes, no: yes > 0,
    "Several of": lambda yes, no: yes > 1,
    "None of": lambda yes, no: yes == 0,
    "All of": lambda yes, no: no == 0,
    "Absolutely all": lambda yes, no: no == 0,
    "Not all of": lambda yes, no: no > 0,
}


def _match(sentence, *expressions):
    for expression in expressions:
        if found := re.fullmatch(expression, sentence):
            return found.groupdict()
    return None


def _read_roles(sentence):
    """World: the set of (who, whom)."""
    found = _match(
        sentence,
        r"The (?P<a>\w+) (?P<no>did not )?\w+ the (?P<b>\w+)\.",
        r"The (?P<b>\w+) was (?P<no>not )?\w+ by the (?P<a>\w+)\.",
        r"It (?P<no>)was the (?P<a>\w+) who \w+ the (?P<b>\w+)\.",
        r"The (?P<b>\w+) whom (?P<no>)the (?P<a>\w+) \w+ went home\.",
    )
    if found:
        event = (found["a"], found["b"])
        return lambda world: (event in world) != bool(found["no"])
    return None


def _role_worlds(premise, hypothesis):
    first, second = re.findall(r"[Tt]he (\w+)", premise)
    events = [(first, second), (second, first)]
    for count in range(3):
        yield from itertools.combinations(events, count)


def _read_quantifiers(sentence):
    """World: of the narrow kind, then of the others, how many do and do not."""
    found = re.fullmatch(rf"({'|'.join(QUANTIFIERS)}) the (\w+) .*\.", sentence)
    if not found:
        return None
    test, narrow = QUANTIFIERS[found[1]], found[2] in NARROW
    return lambda world: test(
        *(world[:2] if narrow else (world[0] + world[2], world[1] + world[3]))
    )


def _quantifier_worlds(premise, hypothesis):
    for world in itertools.product(range(3), repeat=4):
        if world[0] + world[1] and world[2] + world[3]:
            yield world


def _read_connectives(sentence):
    """World: the set of the things that were bought."""
    things = re.findall(r"\ba \w+", sentence)
    if not things:
        return None
    if "but not" in sentence:
        return lambda world: things[0] in world and things[1] not in world
    some = " or " in sentence or " nor " in sentence
    negated = "did not" in sentence or "neither" in sentence
    combine = any if some else all
    return lambda world: combine(thing in world for thing in things) != negated


def _connective_worlds(premise, hypothesis):
    things = sorted(set(re.findall(r"\ba \w+", premise + hypothesis)))
    for count in range(len(things) + 1):
        yield from itertools.combinations(things, count)


def _comparison(sentence):
    relation = next((r for r in INVERSE if r in sentence), None)
    people = re.findall(r"[Tt]he (\w+)", sentence)
    return relation, people


def _read_comparisons(sentence):
    """World: the people in order, and the relation that orders them."""
    relation, people = _comparison(sentence)
    if relation is None:
        return None
    if sentence.startswith("Like"):
        pairs = [(people[0], people[2]), (people[1], people[2])]
    elif " who " in sentence:
        pairs = list(itertools.pairwise(people))
    else:
        pairs = [(people[0], other) for other in people[1:]]

    def holds(world):
        order, ordering = world
        sign = 1 if relation == ordering else -1
        return all(
            sign * (order.index(b) - order.index(a)) > 0 for a, b in pairs
        )

    return holds


def _comparison_worlds(premise, hypothesis):
    relation, people = _comparison(premise)
    people = sorted({*people, *_comparison(hypothesis)[1]})
    for order in itertools.permutations(people):
        yield order, relation


READERS = (
    (_read_comparisons, _comparison_worlds),
    (_read_quantifiers, _quantifier_worlds),
    (_read_connectives, _connective_worlds),
    (_read_roles, _role_worlds),
)


def _expected_label(premise, hypothesis):
    for read, worlds in READERS:
        p, h = read(premise), read(hypothesis)
        if p and h:
            held = {h(w) for w in worlds(premise, hypothesis) if p(w)}
            return {(True,): 0, (False, True): 1, (False,): 2}[
                tuple(sorted(held))
            ]
    raise AssertionError(f"Nobody reads: {premise} {hypothesis}")


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_label_holds_in_every_world(split):
    for row in generated.read_rows("entailment", split):
        expected = _expected_label(row["premise"], row["hypothesis"])
        assert row["label"] == expected, row


@pytest.mark.parametrize("first", INVERSE)
def test_opposite_relations_are_listed_once(first):
    assert INVERSE[INVERSE[first]] == first
