"""Whether a host can be reached, soon.

Libraries that download retry for up to minutes without a network and then end
deep inside themselves, so hosts are tried before they are called.
"""

import http.client
import queue
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

_SECONDS = 3.0


def answers(*addresses):
    """Returns whether one of some addresses can be reached, in six seconds.

    Through the proxy where the environment names one for it (`https_proxy`,
    `no_proxy` and so on).

    Args:
        *addresses: Such as `"https://huggingface.co"`.
    """
    found = queue.Queue()
    # Threads that are left behind: to look up a name has no time limit.
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


def _answers(address):
    """Asks for a page: a proxy may answer and yet let nothing through."""
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
        return True  # The host's own: there is a way to it.
    except urllib.error.URLError as error:
        # Likewise; which certificates hold is the download's business.
        return isinstance(error.reason, ssl.SSLError)
    except (OSError, http.client.HTTPException):
        return False
    return True
