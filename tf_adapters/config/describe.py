"""Describes each setting, using the docstrings of the settings' classes.

The following command writes the page that lists all settings:

    python -m tf_adapters.config.describe > docs/settings.md
"""

from collections.abc import Iterator
import dataclasses
import inspect
import re
from typing import Any

from tf_adapters.config import settings as config_settings

_TITLE = """# Settings

Made by `python -m tf_adapters.config.describe`. Each is set with
`--params_override=<name>=<value>`, or in a YAML file for `--config_file`; some
have a flag of their own (`--help`). Settings of a method (`method.<name>`) are
in [methods.md](methods.md) and in its class, those of a head (`head.<name>`) in
[guide.md](guide.md#kinds-of-output-and-file-formats).

Editors with the YAML language server complete such a file and mark its mistakes
if its first line is `# yaml-language-server: $schema=<path>`, with the path of
[settings.schema.json](settings.schema.json).
"""


def settings(
    cls: type = config_settings.Config, prefix: str = ""
) -> Iterator[tuple[str, Any, str]]:
    """Yields the name, the default and the description of each setting.

    Args:
        cls: A dataclass of settings. Settings of nested dataclasses are
            included. Defaults to `Config`.
        prefix: Prefix of each name.
    """
    meanings = attributes(cls)
    for field in dataclasses.fields(cls):
        name = f"{prefix}{field.name}"
        if isinstance(field.type, type) and dataclasses.is_dataclass(
            field.type
        ):
            yield from settings(field.type, f"{name}.")
        else:
            yield name, field.default, meanings[field.name]


def attributes(cls: type) -> dict[str, str]:
    """Returns a dict from each attribute of a class to its description.

    The descriptions are read from the section `Attributes` of the docstring.
    """
    text = (inspect.getdoc(cls) or "").partition("Attributes:\n")[2]
    found = re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", text, re.MULTILINE)
    return {name: " ".join(words.split()) for name, words in found}


def meaning(name: str) -> Any:
    """Returns the first sentence of the description of the setting `name`."""
    texts = {found: text for found, _, text in settings()}
    return re.split(r"(?<=\.) ", texts[name])[0]


def settings_page() -> str:
    """Returns the text of docs/settings.md."""
    lines = [_TITLE, "| setting | default | meaning |", "|---|---|---|"]
    for name, default, text in settings():
        shown = "" if default is dataclasses.MISSING else f"`{default!r}`"
        lines.append(f"| `{name}` | {shown} | {text} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(settings_page())
