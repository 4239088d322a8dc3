"""A tf.data service with two workers gives the batches, in their order."""

import random
import socket
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from tf_adapters.data import service
from tf_adapters.settings import ConfigError


@pytest.fixture(scope="module")
def address():
    dispatcher = service.serve()
    host = dispatcher.target.removeprefix("grpc://")
    workers = [service.serve(dispatcher=host) for _ in range(2)]
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

    data = service.compute(_plan(60), slow_for_some, address)
    for _ in range(2):  # A second pass is another job.
        values = [int(element["value"]) for element in data]
        assert values == [7 * i for i in range(60)]


def test_what_comes_early_waits():
    pairs = [(i, str(i)) for i in range(50)]
    random.Random(0).shuffle(pairs)
    assert list(service.in_order(pairs, 50)) == [str(i) for i in range(50)]


def test_a_lost_batch_is_an_error_and_no_hang():
    pairs = [(i, i) for i in range(50) if i != 30]
    found = []
    with pytest.raises(service.LostBatchError, match="Batch 30 of 50"):
        for value in service.in_order(pairs, 50):
            found.append(value)
    assert found == list(range(30))
    # Long before an endless rest is held in memory.
    endless = iter(range(1, 10**9))
    with pytest.raises(service.LostBatchError, match="Batch 0"):
        list(service.in_order(((i, i) for i in endless), 10**9))
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
        service.compute(_plan(3), lambda value: value, address)


@pytest.mark.slow
def test_the_servers_command():
    command = [sys.executable, "-m", "tf_adapters.data.service"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True
    ) as dispatcher:
        target = dispatcher.stdout.readline().split("--data_service=")[1]
        host = target.strip().removeprefix("grpc://")
        worker = service.serve(dispatcher=host)
        data = service.compute(_plan(9), lambda v: v + 1, target.strip())
        assert [int(v) for v in data] == [7 * i + 1 for i in range(9)]
        del worker
        dispatcher.terminate()
