"""What can happen to a file of a folder, as a value that can be stored."""

import base64
import dataclasses
import json
import os
from pathlib import Path
import shutil

_HUGE = 1 << 40


@dataclasses.dataclass(frozen=True)
class Damage:
    """A change to one file.

    Attributes:
        file: Path of the file, relative to its folder.
        kind: `"content"`, or the thing that takes the place of the file:
            `"nothing"`, `"folder"`, `"pipe"`, `"sparse"` (a file of a
            terabyte), `"endless"` (a link to a file without end), `"loop"` (a
            link to itself), `"outside"` (a link to another file).
        content: New content of the file.
        harmless: Whether the content means the same as before, for example
            because only spaces were added.
    """

    file: str
    kind: str
    content: bytes = b""
    harmless: bool = False

    def apply(self, folder):
        """Changes a file of a folder."""
        path = Path(folder) / self.file
        remove(path)
        _MAKE[self.kind](path, self.content)


def remove(path):
    """Removes a file, a link, a pipe or a folder, if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _sparse(path, content):
    with path.open("wb") as file:
        file.truncate(_HUGE)


_MAKE = {
    "content": Path.write_bytes,
    "nothing": lambda path, content: None,
    "folder": lambda path, content: path.mkdir(),
    "pipe": lambda path, content: os.mkfifo(path),
    "sparse": _sparse,
    "endless": lambda path, content: path.symlink_to("/dev/zero"),
    "loop": lambda path, content: path.symlink_to(path.name),
    "outside": lambda path, content: path.symlink_to("/etc/passwd"),
}
KINDS = tuple(_MAKE)


def restore(folder, whole, damages):
    """Puts the undamaged files back.

    Args:
        folder: Damaged copy of `whole`.
        whole: Path of the undamaged folder.
        damages: List of `Damage` that was applied to `folder`.
    """
    for damage in damages:
        path = Path(folder) / damage.file
        remove(path)
        shutil.copyfile(Path(whole) / damage.file, path)


def to_json(reader, why, damages):
    """Returns damages as JSON text.

    Args:
        reader: Name of the reader that they are for.
        why: What the reader did with them.
        damages: List of `Damage`.
    """
    rows = [
        {**vars(one), "content": base64.b85encode(one.content).decode()}
        for one in damages
    ]
    content = {"reader": reader, "why": why, "damages": rows}
    return json.dumps(content, indent=1) + "\n"


def from_json(text):
    """Returns a reader's name and the list of `Damage` in a JSON text."""
    content = json.loads(text)
    return content["reader"], [
        Damage(**{**row, "content": base64.b85decode(row["content"])})
        for row in content["damages"]
    ]
