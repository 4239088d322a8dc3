"""Damages values that were parsed from JSON or YAML."""

import copy
import json

_LONG = "x" * 20_000
_CLIMBING = ("../../x", "/etc/passwd", "a/../../b", "..", ".", "a\0b", "~/x")
_VALUES = (
    *(None, True, False, 0, 1, -1, 2, 3.5, -0.0, 1e300, 2**31, 2**63, 10**400),
    *(float("nan"), float("inf"), "", " ", "a", "1", "nan", "\ud800", "\u202e"),
    *([], {}, [[]], [None], {"": 0}, [0] * 3, ["a", "a"], _LONG, [_LONG] * 9),
    *_CLIMBING,
)


def _nested():
    value = 0
    for number in range(150):
        value = [value] if number % 2 else {"a": value}
    return value


def _places(value):
    """Yields each container in a value with a key or index in it."""
    items = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    for key, inner in items:
        yield value, key
        yield from _places(inner)


def _draw(places, chance):
    """Draws a value: an odd one, one of the file, or one of another type."""
    place, key = chance.choice(places)
    drawn = chance.choice(
        (
            lambda: chance.choice(_VALUES),
            lambda: chance.choice(_VALUES),
            lambda: chance.choice(_VALUES),
            lambda: place[key],
            lambda: [place[key]],
            lambda: {"a": place[key]},
            lambda: str(place[key])[:1000],
            _nested,
        )
    )()
    # A second damage may change it.
    return copy.deepcopy(drawn)


def _replace(value, places, chance):
    place, key = chance.choice(places)
    place[key] = _draw(places, chance)


def _remove(value, places, chance):
    place, key = chance.choice(places)
    del place[key]


def _add(value, places, chance):
    place, key = chance.choice(places)
    if isinstance(place, list):
        place.insert(key, _draw(places, chance))
    else:
        place[chance.choice(("a", "", str(key) + "_", *_CLIMBING))] = _draw(
            places, chance
        )


def _rename(value, places, chance):
    place, key = chance.choice(places)
    if isinstance(place, dict):
        names = ("a", "", _LONG, str(key).upper(), *_CLIMBING)
        place[chance.choice(names)] = place.pop(key)
    else:
        place.append(place.pop(key))


def _enlarge(value, places, chance):
    place, key = chance.choice(places)
    if isinstance(place[key], list | str) and len(place[key]) < 1000:
        place[key] = place[key] * chance.choice((2, 1000))
    elif isinstance(place[key], int | float):
        place[key] *= chance.choice((-1, 2, 1000, 10**9, 10**300))


_MUTATIONS = (_replace, _replace, _replace, _remove, _add, _rename, _enlarge)


def mutate(value, chance):
    """Returns a damaged copy of a value.

    Args:
        value: Nested dicts and lists.
        chance: `random.Random`.
    """
    value = copy.deepcopy(value)
    for _ in range(chance.choice((1, 1, 1, 2))):
        places = list(_places(value))
        if not places:
            return copy.deepcopy(chance.choice(_VALUES))
        # The key may be the index of a list that became shorter.
        chance.choice(_MUTATIONS)(value, places, chance)
    return value


def to_json(value, chance):
    """Returns a value as JSON bytes, sometimes with a key twice."""
    text = json.dumps(value, ensure_ascii=chance.random() < 0.7)
    if isinstance(value, dict) and value and chance.random() < 0.1:
        key = chance.choice(list(value))
        twice = json.dumps({key: chance.choice(_VALUES)})
        text = f"{twice[:-1]}, {text[1:]}"
    return text.encode("utf-8", "surrogatepass")
