"""Starts `tf-adapters serve` in processes of its own, and asks it over HTTP."""

import collections
import concurrent.futures
import http.client
import os
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest

from tests.hostile import siege
from tests.serving import live
from tests.serving import served

pytestmark = [pytest.mark.slow, pytest.mark.integration]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return served.write_adapters(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def server(folder):
    """A server, which the tests of this file use in their order."""
    server = live.Server(
        str(folder), f"--allow_sources={folder}", "--max_texts=4"
    )
    server.wait()
    yield server
    server.process.kill()
    server.process.wait()


@pytest.fixture(scope="module")
def expected(folder):
    """Each adapter's own answer to its instance."""
    return {name: served.expected(folder, name)[0] for name in served.KINDS}


def test_clients_get_the_answers_of_their_adapters(server, expected):
    def ask(i):
        name = list(served.KINDS)[i % len(served.KINDS)]
        return live.is_own(
            server.predict(name, [served.KINDS[name][2]]), expected[name]
        )

    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        assert all(threads.map(ask, range(60)))


def test_errors_have_their_status(server):
    assert server.predict("nobody", ["a film"])[0] == 404
    assert server.predict("films", ["a film"] * 5)[0] == 413
    assert server.predict("films", [1])[0] == 400
    status, content = server.ask("/v3")
    assert status == 404 and "/v2/repository/index" in content["error"]
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.request("POST", "/v2/repository/index")
    assert connection.getresponse().status == 401
    connection.close()


@pytest.mark.skipif(not shutil.which("chromium"), reason="needs chromium")
def test_the_page_asks_for_the_token(server):
    done = subprocess.run(
        [
            *("chromium", "--headless", "--no-sandbox", "--disable-gpu"),
            *("--virtual-time-budget=5000", "--dump-dom"),
            f"http://127.0.0.1:{server.port}/",
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert '<p id="token_line">' in done.stdout  # It was hidden.
    assert "Authorization: Bearer TOKEN" in done.stdout


def test_adapters_come_and_go_while_clients_ask(server, folder, expected):
    answers = collections.Counter()
    done = threading.Event()

    def ask(name):
        while not done.is_set():
            response = server.predict(name, [served.KINDS[name][2]])
            answers[live.is_own(response, expected[name])] += 1

    clients = [threading.Thread(target=ask, args=(n,)) for n in served.KINDS]
    for client in clients:
        client.start()
    repository = "/v2/repository/models"
    source = {"parameters": {"source": str(folder / "films")}}
    for _ in range(3):
        assert server.ask(f"{repository}/more/load", source)[0] == 200
        response = server.predict("more", [served.KINDS["films"][2]])
        assert live.is_own(response, expected["films"])
        assert server.ask(f"{repository}/films/load")[0] == 200
        assert server.ask(f"{repository}/more/unload")[0] == 200
        assert server.predict("more", ["a film"])[0] == 404
    done.set()
    for client in clients:
        client.join()
    assert answers[True] > 10
    assert not answers[False]


def test_hostile_clients_stop_nobody(server, expected, record_property):
    record_property("faults", 330)
    with siege.Watch(server, expected) as watch:
        counts, faults = siege.attack(server, range(330), seed=1)
    assert not faults
    assert not watch.wrong
    assert watch.right > 5
    outcomes = sum(counts.values(), collections.Counter())
    assert min(outcomes[key] for key in ("refused", "answered", "closed")) > 5


def test_hundreds_of_open_connections_stop_nobody(server, expected):
    address = "127.0.0.1", server.port
    opened = [socket.create_connection(address) for _ in range(500)]
    for connection in opened:
        connection.sendall(b"POST /v1/models/films:predict HTTP/1.1\r\nHost:")
    response = server.predict("films", [served.KINDS["films"][2]])
    assert live.is_own(response, expected["films"])
    for connection in opened:
        connection.close()


@pytest.mark.parametrize("part", [":engine", ":gateway"])
def test_a_killed_process_is_replaced(server, expected, part):
    (pid,) = server.processes(part)
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 120
    seen = set()
    while time.monotonic() < deadline:
        try:
            response = server.predict("films", [served.KINDS["films"][2]])
        except (OSError, http.client.HTTPException):
            response = (0, None)  # The gateway is being started.
        seen.add(response[0])
        if response[0] == 200:
            break
        time.sleep(0.5)
    assert live.is_own(response, expected["films"])
    assert seen <= {200, 503, 504} | ({0} if part == ":gateway" else set())


def test_sigterm_loses_no_accepted_request(server, expected):
    sent_before, wrong = [], []
    ended = threading.Event()

    def ask(name):
        while not ended.is_set():
            start = time.monotonic()
            try:
                response = server.predict(name, [served.KINDS[name][2]])
            except (OSError, http.client.HTTPException):
                response = (0, None)  # The server has ended.
            if live.is_own(response, expected[name]):
                sent_before.append(start)
            elif start < ending or response[0] not in (0, 503):
                wrong.append((start - ending, response))

    ending = float("inf")  # Until the signal is sent.
    clients = [threading.Thread(target=ask, args=(n,)) for n in served.KINDS]
    for client in clients:
        client.start()
    time.sleep(2)
    # A request that was sent a moment ago may arrive after the signal.
    ending = time.monotonic() - 0.1
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(120) == 0
    ended.set()
    for client in clients:
        client.join()
    assert len(sent_before) > 10
    assert not wrong
