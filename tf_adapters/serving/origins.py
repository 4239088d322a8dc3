"""Refuses requests that a browser sends for the page of another site."""

from __future__ import annotations

from collections.abc import Mapping
import ipaddress
import socket
from urllib.parse import urlsplit

from tf_adapters.serving.request_error import RequestError


def check_origin(headers: Mapping[str, str], is_local: bool) -> None:
    """Raises a `RequestError` if a page of another site may have asked.

    Args:
        headers: Headers of the request, with names in lowercase.
        is_local: Whether to refuse hosts that are not this machine. A page can
            have its own name changed to the address 127.0.0.1 (DNS rebinding).
            Its requests then have the page's name as their host, too.

    Raises:
        RequestError: With status 403.
    """
    host = headers.get("host")
    if is_local and host is not None and not is_loopback(_name_in(f"//{host}")):
        raise RequestError(
            403,
            "This server answers requests to localhost only. Set "
            "TF_ADAPTERS_SERVER_TOKEN to serve other names.",
        )
    origin = headers.get("origin")
    if origin is not None and origin.partition("://")[2] != host:
        raise RequestError(403, "Pages of other sites may not ask.")


def is_loopback(name: str) -> bool:
    """Returns whether a host name or IP address refers to this machine."""
    if name.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def listens_locally(host: str) -> bool:
    """Returns whether an address to listen on is reached from here only.

    Spellings of 127.0.0.1 such as `127.1`, and names, are looked up.
    """
    try:
        found = socket.getaddrinfo(host, None) if host else []
    except OSError:  # The server cannot listen on it, and says so.
        return False
    return bool(found) and all(is_loopback(str(a[4][0])) for a in found)


def _name_in(address: str) -> str:
    """Returns the name in an address, without port, or an empty string."""
    try:
        return urlsplit(address).hostname or ""
    except ValueError:  # For example, a bracket is missing.
        return ""
