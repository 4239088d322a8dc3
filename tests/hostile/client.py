"""Sends an attack, and reads what the server answers."""

import contextlib
import http.client
import json
import socket
import struct
import time

# Seconds within which the server must answer or close the connection. It waits
# for the rest of a request for up to twenty.
_SECONDS = 40
# A server that has much to do may refuse a request with one of these.
_ALLOWED = {429, 501, 503, 504, 505}


def send(attack, port):
    """Returns what became of an attack: "refused", "answered" or "closed".

    Args:
        attack: `attacks.Attack`.
        port: Port of the server.

    Raises:
        AssertionError: If the server fails, or does not react.
    """
    address = "127.0.0.1", port
    with socket.create_connection(address, _SECONDS) as connection:
        # The server may close the connection while we send.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for piece in attack.pieces:
                connection.sendall(piece)
                time.sleep(attack.pause)
        if attack.leaves:
            # Closes with a reset, as if the client had crashed.
            option = struct.pack("ii", 1, 0)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, option)
            return "closed"
        return _read(connection)


def _read(connection):
    """Reads one response, if the server does not close the connection."""
    response = http.client.HTTPResponse(connection, method="POST")
    try:
        response.begin()
        content = response.read()
    except (
        ConnectionResetError,
        http.client.BadStatusLine,
        http.client.IncompleteRead,
    ) as error:
        _check_is_closed(error)
        return "closed"
    except TimeoutError:
        raise AssertionError(f"no answer in {_SECONDS} seconds") from None
    status = response.status
    assert status < 500 or status in _ALLOWED, (status, content[:500])
    assert b"Traceback" not in content, content[:2_000]
    if response.headers.get_content_type() == "application/json" and content:
        json.loads(content)
    return "answered" if status < 300 else "refused"


def _check_is_closed(error):
    """Raises an error if the server sent something that is not HTTP."""
    line = getattr(error, "line", "") or ""
    assert not line.strip("' \r\n") or "closed" in str(error), line
