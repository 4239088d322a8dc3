"""The question that an unknown name is answered with."""

import difflib


def did_you_mean(name, known):
    """Returns " Did you mean `x`?" where a known name is close, else ""."""
    close = difflib.get_close_matches(str(name), list(known), n=1)
    return f" Did you mean `{close[0]}`?" if close else ""
