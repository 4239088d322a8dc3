"""Finds the folder of an encoder's checkpoint, and the license in it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from tf_adapters.common.errors import UserError
from tf_adapters.encoders.load import find_encoder

if TYPE_CHECKING:
    from tf_adapters.encoders.encoder import Encoder

_LOGGER = logging.getLogger(__name__)
_LINE = "---\n"


def folder_of(encoder: Encoder) -> Path | None:
    """Returns the folder that an encoder was loaded from.

    Args:
        encoder: `Encoder`.

    Returns:
        Path, or `None` if the encoder is a KerasHub preset or was made in
        Python, or if the folder no longer exists.
    """
    try:
        found = find_encoder(encoder.name)
    except UserError:
        return None
    return found if isinstance(found, Path) else None


def license_of(folder: Path | None) -> str:
    """Returns the license that a model card names, or "" if it is not known.

    Args:
        folder: Path of the encoder's folder, or `None`. Its model card is
            `README.md`, which may begin with YAML between two lines `---`.
    """
    if folder is None or not (folder / "README.md").is_file():
        return ""
    text = (folder / "README.md").read_text(encoding="utf-8", errors="replace")
    if not text.startswith(_LINE):
        return ""
    try:
        card = yaml.safe_load(text.split(_LINE)[1])
    except yaml.YAMLError as error:
        _LOGGER.warning("%s/README.md cannot be read: %s", folder, error)
        return ""
    found = card.get("license") if isinstance(card, dict) else None
    return ", ".join(found) if isinstance(found, list) else str(found or "")
