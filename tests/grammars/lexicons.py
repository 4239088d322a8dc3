"""The words of a grammar, by the slots that they fill."""

_SPLITS = ("train", "validation", "test")


def entries(grammar, slots):
    """Returns a list of forms for each word of any split."""
    (found,) = [one for one in grammar.lexicons if one.slots == slots]
    return [entry for split in _SPLITS for entry in found.entries(split)]
