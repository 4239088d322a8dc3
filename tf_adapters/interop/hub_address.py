"""Addresses of adapters on the Hugging Face Hub."""

import re

from tf_adapters.common.errors import AdapterError

SCHEME = "hf://"


def parse_address(address: str) -> tuple[str, str | None]:
    """Splits `hf://owner/name@revision` into repository and revision.

    Args:
        address: String. If it has no `@revision`, the revision is `None`, which
            means the newest.

    Raises:
        AdapterError: If the text is not such an address.
    """
    found = re.fullmatch(
        r"hf://([\w.-]+/[\w.-]+)(?:@([\w./-]+))?", str(address)
    )
    # `..` could lead out of the cache. The Hub forbids it in names.
    if not found or ".." in str(address):
        raise AdapterError(
            f"`{address}` is not an adapter's address. Expected "
            "hf://owner/name, or hf://owner/name@revision."
        )
    return found[1], found[2]


def name_of(address: str) -> str:
    """Returns the name for an adapter from the Hub: `owner/name@revision`.

    Dots become underscores, because AdapterHub does not allow dots in names.
    Slashes in the revision become hyphens.

    Args:
        address: See `parse_address`.
    """
    repository, revision = parse_address(address)
    at = f"@{revision.replace('/', '-')}" if revision else ""
    return f"{repository}{at}".replace(".", "_")


def is_address(folder: object) -> bool:
    """Returns whether a folder is given by an `hf://` address, not a path."""
    return str(folder).startswith(SCHEME)
