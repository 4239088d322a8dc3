"""Draws what happens to an undamaged folder."""

from tests.fuzz import damage as damage_lib
from tests.fuzz import file_mutations
from tests.fuzz.reader import files_of

_OTHER_KINDS = [kind for kind in damage_lib.KINDS if kind != "content"]


def draw(whole, chance, special=True):
    """Returns a list of one or two `Damage`.

    Args:
        whole: Path of an undamaged folder.
        chance: `random.Random`.
        special: Whether pipes and so on may take the place of files.
    """
    names = files_of(whole)
    count = min(len(names), chance.choice((1, 1, 1, 1, 2)))
    return [
        draw_for(whole / name, chance, special, name)
        for name in chance.sample(names, count)
    ]


def draw_for(path, chance, special=True, name=None):
    """Returns a `Damage` of one file.

    Args:
        path: Path of the undamaged file.
        chance: `random.Random`.
        special: See `draw`.
        name: `Damage.file`. Default: the file's name.
    """
    name = name or path.name
    kind = chance.random()
    if special and kind < 0.04:
        # Reading a part of a terabyte takes seconds.
        weights = [0.1 if kind == "sparse" else 1 for kind in _OTHER_KINDS]
        (kind,) = chance.choices(_OTHER_KINDS, weights)
        return damage_lib.Damage(name, kind)
    content = path.read_bytes()
    if kind < 0.08:
        same = file_mutations.same_meaning(name, content)
        if same is not None:
            return damage_lib.Damage(name, "content", same, harmless=True)
    content = file_mutations.mutate(name, content, chance)
    return damage_lib.Damage(name, "content", content)
