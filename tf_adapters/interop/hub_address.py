"""Addresses of adapters on the Hugging Face Hub."""

import re

from tf_adapters.common.errors import AdapterError


def parse_address(address):
    """Returns repository and revision of `hf://owner/name@revision`.

    Args:
        address: Text; without `@revision` that is `None`, the newest.

    Raises:
        AdapterError: If it is no such address.
    """
    found = re.fullmatch(
        r"hf://([\w.-]+/[\w.-]+)(?:@([\w./-]+))?", str(address)
    )
    # No name there has two dots, which would lead out of the cache.
    if not found or ".." in str(address):
        raise AdapterError(
            f"`{address}` is no address of an adapter. Expected "
            "hf://owner/name, or hf://owner/name@revision."
        )
    return found[1], found[2]


def name_of(address):
    """Returns what an adapter at an address is called: `owner/name@revision`.

    Without dots, which names in AdapterHub's folders cannot have.
    """
    repository, revision = parse_address(address)
    at = f"@{revision.replace('/', '-')}" if revision else ""
    return f"{repository}{at}".replace(".", "_")


def is_address(folder):
    """Returns whether this is an address on the Hub, and no path."""
    return str(folder).startswith("hf://")
