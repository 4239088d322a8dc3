"""Checks AdapterHub folders: names, paths, and positions of methods."""

import os
from pathlib import Path
import re
from typing import Any

from tf_adapters import methods
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.interop.formats import SETUP_FILE

LONGEST_NAME = 255


def check_embeddings(
    method: methods.Method, shape: methods.EncoderShape
) -> None:
    """Raises a `UserError` if AdapterHub attaches a method differently.

    The embeddings of some encoders, such as ELECTRA's small models, are
    narrower than the blocks. With these encoders, AdapterHub attaches prompts
    and invertible adapters before the projection to the blocks' width, and
    tf_adapters attaches them after it.
    """
    parts = getattr(method, "parts", (method,))
    kinds = (methods.Invertible, methods.PromptTuning)
    narrow = shape.read_in("word_embeddings") != shape.width
    if narrow and any(isinstance(part, kinds) for part in parts):
        raise UserError(
            "AdapterHub attaches prompts and invertible adapters at other "
            "positions than tf_adapters if the encoder's embeddings are "
            f"narrower ({shape.read_in('word_embeddings')}) than its blocks "
            f"({shape.width}). Use an encoder whose embeddings are as wide as "
            "its blocks."
        )


def check_name(name: str) -> None:
    """Raises an `AdapterError` if a name is invalid for PyTorch's modules."""
    if not _is_name(name):
        raise AdapterError(
            "An adapter in AdapterHub's format cannot be called "
            f"`{cut(name)}`: dots, commas and slashes mean something else "
            "there. Give it another name."
        )


def folder_within(folder: Path, name: Any, what: str) -> Path:
    """Returns the path of an adapter's or head's folder in a setup.

    A setup is AdapterHub's folder with a fusion and its members. The returned
    folder is always inside the setup. Otherwise, a downloaded setup could make
    us read any folder of this machine.

    Args:
        folder: Path of the setup.
        name: Name of the folder in the setup's configuration.
        what: Kind of folder, for the error; `"adapter"` for example.

    Raises:
        AdapterError: If the name is invalid, or the folder is a link.
    """
    if not _is_name(name):
        raise AdapterError(
            f"{Path(folder) / SETUP_FILE} names the {what} {ascii(name)[:100]}."
            f" Expected the name of a folder in {folder}, without dots, commas "
            f"and slashes, of at most {LONGEST_NAME} bytes. Copy the set-up "
            "again, or load its adapters one by one."
        )
    return check_no_link(Path(folder) / name)


def folder_of_fusion(folder: Path, members: list[str]) -> Path:
    """Returns the path of a fusion's folder in a setup.

    AdapterHub names it after all members.

    Args:
        folder: Path of the setup.
        members: Names of the fusion's members.

    Raises:
        AdapterError: If the name is longer than names of folders can be, or the
            folder is a link.
    """
    name = ",".join(members)
    if len(name.encode()) > LONGEST_NAME:
        raise AdapterError(
            f"{folder / SETUP_FILE} is a fusion of {len(members)} adapters, "
            f"{cut(members)}. Their folder would be named after all of them, "
            f"and a name may have at most {LONGEST_NAME} bytes. Copy the "
            "set-up again."
        )
    return check_no_link(folder / name)


def check_no_link(path: Path) -> Path:
    """Returns the path, or raises an `AdapterError` if it is a link."""
    # Unlike `Path.is_symlink`, this accepts paths of any length.
    if os.path.islink(path):
        raise AdapterError(
            f"{path} is a link, but a set-up's adapters must be in its own "
            "folder. Put a copy of the adapter there."
        )
    return path


def _is_name(name: object) -> bool:
    return (
        isinstance(name, str)
        and re.fullmatch(r"[^.,/\\\0]+", name) is not None
        # A half of a surrogate pair has no bytes of its own.
        and len(name.encode(errors="surrogatepass")) <= LONGEST_NAME
    )
