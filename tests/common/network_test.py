"""Tests the check for a host: directly, through a proxy, with a timeout."""

import contextlib
import socket
import threading
import time

import pytest

from tf_adapters.common import network

# Nothing listens on this port.
CLOSED = "https://127.0.0.1:1"


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch):
    names = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
    for name in (*names, *map(str.upper, names)):
        monkeypatch.delenv(name, raising=False)


FORBIDDEN = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"


@contextlib.contextmanager
def _serving(reply):
    """Yields the address of a server with a fixed reply, and its requests.

    Each connection ends after its reply.
    """
    received = []

    def serve(server):
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return  # Closed: the test is over.
            with connection:
                received.append(connection.recv(1024))
                connection.sendall(reply)
                # Unread data at closing would reset the connection before its
                # reply is read.
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(1024):
                        pass

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, args=(server,), daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}", received


def test_one_host_is_enough():
    with _serving(FORBIDDEN) as (place, _):
        assert network.answers(CLOSED, f"http://{place}")
    assert not network.answers(CLOSED, CLOSED)


def test_a_host_that_never_answers_is_not_waited_for(monkeypatch):
    release = threading.Event()

    def wait(*unused):
        release.wait()
        raise OSError("no network")

    monkeypatch.setattr(network, "_SECONDS", 0.1)
    monkeypatch.setattr(socket, "create_connection", wait)
    start = time.monotonic()
    assert not network.answers("https://example.com", "https://example.org")
    assert time.monotonic() - start < 2
    release.set()


def test_hosts_share_the_time(monkeypatch):
    def answer(seconds):
        time.sleep(float(seconds))
        return False

    monkeypatch.setattr(network, "_SECONDS", 0.2)
    monkeypatch.setattr(network, "_answers", answer)
    start = time.monotonic()
    assert not network.answers("0.35", "0.7")
    assert time.monotonic() - start < 0.6


def test_the_answer_comes_within_ten_seconds():
    assert 2 * network._SECONDS < 10


@pytest.mark.parametrize("form", ["http://{}", "{}", "http://user:word@{}"])
@pytest.mark.parametrize("name", ["https_proxy", "all_proxy"])
def test_the_proxy_is_asked(monkeypatch, name, form):
    with _serving(FORBIDDEN) as (place, received):
        monkeypatch.setenv(name, form.format(place))
        assert not network.answers("https://host.example")
    assert received[0].startswith(b"CONNECT host.example:443")


def test_some_hosts_need_no_proxy(monkeypatch):
    monkeypatch.setenv("http_proxy", CLOSED)
    with _serving(FORBIDDEN) as (place, _):
        assert not network.answers(f"http://{place}")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert network.answers(f"http://{place}")


@pytest.mark.parametrize("name", ["https_proxy", "all_proxy"])
@pytest.mark.parametrize(
    ("reply", "answers"),
    [
        (FORBIDDEN, False),
        (b"what?\r\n\r\n", False),
        # Connects to a server with an invalid certificate.
        (b"HTTP/1.1 200 OK\r\n\r\nnot what TLS says", True),
    ],
)
def test_a_proxy_that_lets_nothing_through_is_no_network(
    monkeypatch, name, reply, answers
):
    with _serving(reply) as (place, _):
        monkeypatch.setenv(name, f"http://{place}")
        hosts = ("https://host.example", "https://other.example")
        assert network.answers(*hosts) is answers
