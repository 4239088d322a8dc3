"""A tf.data service with two workers gives the batches, in their order."""

import contextlib
import random
import socket
import subprocess
import sys
import urllib.parse

import numpy as np
import pytest
import tensorflow as tf

from tf_adapters.cli import errors as cli_errors
from tf_adapters.common.errors import ConfigError
from tf_adapters.data.batches import tf_data_service
from tf_adapters.training import workers as training_workers


@pytest.fixture(scope="module")
def address():
    dispatcher = tf_data_service.serve()
    host = dispatcher.target.removeprefix("grpc://")
    workers = [tf_data_service.serve(dispatcher=host) for _ in range(2)]
    yield dispatcher.target
    del workers, dispatcher


def _plan(count):
    values = np.arange(count) * 7
    return tf.data.Dataset.from_tensor_slices((np.arange(count), values))


def test_elements_come_in_order_from_both_workers(address):
    def slow_for_some(value):
        # The first of every ten takes long, so that others overtake it.
        times = tf.where(value % 70 == 0, 3_000_000, 10)
        return {"value": value, "noise": tf.reduce_sum(tf.range(times)) * 0}

    data = tf_data_service.computed_on_service(
        _plan(60), slow_for_some, address
    )
    for _ in range(2):  # A second pass is another job.
        values = [int(element["value"]) for element in data]
        assert values == [7 * i for i in range(60)]


def test_what_comes_early_waits():
    pairs = [(i, str(i)) for i in range(50)]
    random.Random(0).shuffle(pairs)
    assert list(tf_data_service.in_order(pairs, 50)) == [
        str(i) for i in range(50)
    ]


def test_a_lost_batch_is_an_error_and_no_hang():
    pairs = [(i, i) for i in range(50) if i != 30]
    found = []
    with pytest.raises(tf_data_service.LostBatchError, match="Batch 30 of 50"):
        for value in tf_data_service.in_order(pairs, 50):
            found.append(value)
    assert found == list(range(30))
    # Long before an endless rest is held in memory.
    endless = iter(range(1, 10**9))
    with pytest.raises(tf_data_service.LostBatchError, match="Batch 0"):
        list(tf_data_service.in_order(((i, i) for i in endless), 10**9))
    assert next(endless) < 2000


def _free_port():
    with socket.socket() as server:
        server.bind(("localhost", 0))
        return server.getsockname()[1]


@pytest.mark.parametrize(
    "address", ["localhost:1", "grpc://localhost", "http://localhost:1", None]
)
def test_addresses_where_nothing_answers(address):
    address = address or f"grpc://localhost:{_free_port()}"
    with pytest.raises(ConfigError, match=f"--data_service={address}"):
        tf_data_service.computed_on_service(
            _plan(3), lambda value: value, address
        )


def test_nothing_is_asked_for_after_the_last_one():
    def pairs():
        yield from [(1, "b"), (0, "a")]
        pytest.fail("asked for one more")

    assert list(tf_data_service.in_order(pairs(), 2)) == ["a", "b"]


def test_a_host_without_a_name_is_localhost(monkeypatch):
    assert socket.getaddrinfo(tf_data_service.this_host(), None)
    monkeypatch.setattr(socket, "gethostname", lambda: "no-such-host.invalid")
    assert tf_data_service.this_host() == "localhost"


@pytest.mark.parametrize("host", ["a.example", "localhost"])
def test_a_worker_is_found_at_its_host(monkeypatch, host):
    found = []
    monkeypatch.setattr(
        tf.data.experimental.service, "WorkerServer", found.append
    )
    tf_data_service.serve(dispatcher="b.example:1", host=host)
    assert found[0].worker_address == f"{host}:%port%"
    assert found[0].data_transfer_address.startswith(f"{host}:")


@contextlib.contextmanager
def _dispatcher():
    """Gives its address, and a function that starts a worker's process."""
    command = [sys.executable, "-m", "tf_adapters.data.batches.tf_data_service"]
    with contextlib.ExitStack() as stack:

        def start(*options):
            process = subprocess.Popen(
                [*command, *options],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        line = start().stdout.readline()
        target = line.split("--data_service=")[1].strip()
        place = target.removeprefix("grpc://")

        def start_worker():
            worker = start(f"--dispatcher={place}")
            at = f"Worker of {place} at {tf_data_service.this_host()}\n"
            assert worker.stdout.readline() == at
            return worker

        yield target, start_worker


def _made_slowly(value):
    return value + tf.cast(tf.reduce_sum(tf.range(3_000_000)) * 0, value.dtype)


@pytest.mark.slow
def test_a_worker_that_is_killed_and_lost_batches(monkeypatch):
    """The error is a sentence, and the other worker serves the next run."""
    with _dispatcher() as (target, start_worker):
        assert (
            urllib.parse.urlsplit(target).hostname
            == tf_data_service.this_host()
        )
        # Alone, it makes batches that nobody has asked for while the next one
        # starts: those are lost with it.
        worker = start_worker()
        # Too few for one that is missing to be noticed by those that wait.
        data = tf_data_service.computed_on_service(
            _plan(300), _made_slowly, target
        )
        batches = iter(data.prefetch(4))
        assert [int(next(batches)) for _ in range(20)] == [
            7 * i for i in range(20)
        ]
        start_worker()
        worker.kill()
        step = tf.function(lambda: next(batches), autograph=False)
        with monkeypatch.context() as soon:
            soon.setattr(tf_data_service, "_WARNING_SECONDS", 1)
            with pytest.raises(tf.errors.OpError) as caught:
                for _ in range(300):
                    step()
        told = cli_errors.error_sentence(caught.value)
        assert told.startswith("No batch came from the tf.data service at")
        assert told.endswith("goes on from the last checkpoint.")
        assert not isinstance(caught.value, training_workers._LOST)
        values = [int(v) for v in data]
        assert values == [7 * i for i in range(300)]
