"""A quick check whether a host can be reached.

Without a network, libraries that download files retry for minutes and then fail
with obscure errors. This check is therefore run before they are called.
"""

import http.client
import os
import queue
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

_SECONDS = 3.0


def huggingface() -> str:
    """Returns the URL of the Hugging Face Hub, or its mirror `HF_ENDPOINT`."""
    return os.environ.get("HF_ENDPOINT", "https://huggingface.co")


def answers(*addresses: str) -> bool:
    """Returns whether at least one address can be reached within six seconds.

    The proxy settings of the environment are used (`https_proxy`, `no_proxy`
    and so on).

    Args:
        *addresses: Addresses such as `"https://huggingface.co"`.
    """
    found = queue.Queue()
    # Daemon threads can be abandoned, which is necessary because looking up a
    # name has no time limit.
    for address in addresses:
        threading.Thread(
            target=lambda address=address: found.put(_answers(address)),
            daemon=True,
        ).start()
    end = time.monotonic() + 2 * _SECONDS
    try:
        return any(
            found.get(timeout=max(0.0, end - time.monotonic()))
            for _ in addresses
        )
    except queue.Empty:
        return False


def _answers(address: str) -> bool:
    """Returns whether an HTTP request to an address is answered.

    Opening a connection would not be enough, because a proxy can accept
    connections without forwarding requests.
    """
    scheme = urllib.parse.urlsplit(address).scheme
    proxies = urllib.request.getproxies()
    proxy = proxies.get(scheme) or proxies.get("all")
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({scheme: proxy} if proxy else {})
    )
    request = urllib.request.Request(address, method="HEAD")
    try:
        opener.open(request, timeout=_SECONDS).close()
    except urllib.error.HTTPError:
        return True  # The error is from the host, so it can be reached.
    except urllib.error.URLError as error:
        # With a certificate error, too, the host can be reached. The download
        # itself will check certificates.
        return isinstance(error.reason, ssl.SSLError)
    except (OSError, http.client.HTTPException):
        return False
    return True
