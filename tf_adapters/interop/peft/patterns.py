"""Which modules the settings of a PEFT folder name.

They may be regular expressions, which a stranger wrote. PEFT runs them with
Python's `re`, where a few characters can take longer than anyone waits. RE2's
time is linear in the expression and the name. It has no look-around and no
back-references; what else names modules means the same in both.
"""

import re2

from tf_adapters.common.errors import AdapterError

# A regular expression for each of 250 modules has so many.
_MAX_STATES = 20_000
_OPTIONS = re2.Options()
_OPTIONS.log_errors = False


def matcher(config, setting):
    """Returns a function of a module's names: whether a setting names it.

    A text is a regular expression of a whole name; the texts of a list are
    names or their ends.

    Args:
        config: `PeftConfig`.
        setting: Its key.

    Raises:
        AdapterError: If RE2 does not take the expression.
    """
    value = config.get(setting) or []
    if value == "all-linear":
        return lambda names: True
    if not isinstance(value, str):
        return lambda names: any(
            f".{name}".endswith(f".{end}") for name in names for end in value
        )
    (whole,) = _compiled([value], "{}", setting, config.source)
    return lambda names: any(whole.fullmatch(name) for name in names)


def override(config, setting, default):
    """Returns a function of a module's name: its own value, or the default.

    Args:
        config: `PeftConfig`.
        setting: Key of a dict from regular expressions, of a name or its end,
            to values.
        default: Value of modules that none of them names.

    Raises:
        AdapterError: If RE2 does not take an expression.
    """
    values = config.get(setting) or {}
    found = _compiled(values, r"(.*\.)?({})$", setting, config.source)
    pairs = list(zip(found, values.values(), strict=True))
    return lambda name: next(
        (value for pattern, value in pairs if pattern.match(name)), default
    )


def _compiled(patterns, template, setting, source):
    found, states = [], 0
    for pattern in patterns:
        try:
            _check(pattern)
            one = re2.compile(template.format(pattern), _OPTIONS)
        except re2.error as error:
            raise _refusal(pattern, setting, source, error) from error
        found.append(one)
        states += one.programsize
        if states > _MAX_STATES:
            raise AdapterError(
                f"{source}: the regular expressions of `{setting}` are too "
                f"large, with more than {_MAX_STATES:,} states. List the names "
                "of the modules in place of them."
            )
    return found


def _check(pattern):
    # Python reads it as `{0,n}`, RE2 as these characters.
    if "{," in pattern:
        raise re2.error("no lower bound before `,`")


def _refusal(pattern, setting, source, error):
    why = error.args[0]
    why = why.decode(errors="replace") if isinstance(why, bytes) else why
    return AdapterError(
        f"{source}: `{setting}` has the regular expression {pattern[:80]!r}, "
        f"which tf_adapters does not run ({why[:80]}). Write it without "
        "look-around, back-references and possessive repetition, or list the "
        "names of the modules."
    )
