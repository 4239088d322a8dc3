"""Training batches from a tf.data service, in the order that was asked for.

    python -m tf_adapters.data.service --port=5050
    python -m tf_adapters.data.service --dispatcher=host:5050
    python train.py ... --cache_dir=<folder> --data_service=grpc://host:5050

The first command is the dispatcher. The second is a worker, on any machine that
sees the cache folder under the same path, as often as wanted. The service hands
batches to workers as they ask, and gives them back as they are done: each
carries its number, and waits here until it is its turn. So a run is the same,
bit for bit, as without.
"""

import argparse
import logging
import socket
import threading
import urllib.parse

import tensorflow as tf

from tf_adapters.settings import ConfigError

_LOGGER = logging.getLogger(__name__)
_CONNECT_SECONDS = 5
_FIRST_BATCH_SECONDS = 30
# So many batches are done before one that is missing: its worker is gone.
_MOST_WAITING = 1000


class LostBatchError(RuntimeError):
    """A worker of the service ended with a batch that nobody else has."""


def compute(plan, function, address):
    """Returns `plan.map(function)` in order, computed by a service.

    Args:
        plan: `tf.data.Dataset` of tuples, each with its number, from 0 on,
            first. It must come from one source: that is what is dealt out.
        function: Function of a tuple's other parts.
        address: Address of the dispatcher, `"grpc://host:port"`.

    Returns:
        `tf.data.Dataset` for one process.

    Raises:
        ConfigError: If nothing answers at the address.
    """
    _check_answers(address)
    count = int(plan.cardinality())
    elements = plan.map(
        lambda number, *parts: (number, function(*parts))
    ).apply(
        tf.data.experimental.service.distribute(
            # Each batch is made by one of the workers, whoever is free.
            tf.data.experimental.service.ShardingPolicy.DYNAMIC,
            address,
        )
    )
    return tf.data.Dataset.from_generator(
        lambda: in_order(_with_patience(elements, address), count),
        output_signature=elements.element_spec[1],
    )


def _check_answers(address):
    """TensorFlow would try for hours."""
    parts = urllib.parse.urlsplit(address)
    try:
        if parts.scheme != "grpc" or not parts.hostname or not parts.port:
            raise ValueError("expected grpc://host:port")
        place = (parts.hostname, parts.port)
        socket.create_connection(place, _CONNECT_SECONDS).close()
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"The tf.data service at --data_service={address} does not answer: "
            f"{error}. Start it with `python -m tf_adapters.data.service`, or "
            "leave the flag out."
        ) from error


def _with_patience(elements, address):
    """Yields the elements; says so if there is none for a while."""
    timer = threading.Timer(
        _FIRST_BATCH_SECONDS,
        _LOGGER.warning,
        [
            "No batch from the tf.data service at %s after %d seconds. Has it "
            "workers, and do they see the cache folder under the same path?",
            address,
            _FIRST_BATCH_SECONDS,
        ],
    )
    timer.daemon = True
    timer.start()
    try:
        for element in elements:
            timer.cancel()
            yield element
    finally:
        timer.cancel()


def in_order(elements, count):
    """Yields the values of `(number, value)` pairs from number 0 on.

    Args:
        elements: Iterable of pairs, in any order.
        count: How many there are.

    Raises:
        LostBatchError: If a number does not come.
    """
    waiting, turn = {}, 0
    for number, value in elements:
        waiting[int(number)] = value
        while turn in waiting:
            yield waiting.pop(turn)
            turn += 1
        if len(waiting) > _MOST_WAITING:
            break
    if turn < count:
        raise LostBatchError(
            f"Batch {turn} of {count} did not come from the tf.data service: a "
            "worker of it has ended. The same command goes on from the last "
            "checkpoint."
        )


def serve(port=0, dispatcher=None):
    """Returns a server that has been started: a dispatcher, or a worker of one.

    Args:
        port: Port of a dispatcher; 0 (default) for one that is free.
        dispatcher: Address of a worker's dispatcher, `"host:port"`; `None`
            (default) for a dispatcher.
    """
    service = tf.data.experimental.service
    if dispatcher is None:
        return service.DispatchServer(service.DispatcherConfig(port=port))
    return service.WorkerServer(
        service.WorkerConfig(dispatcher_address=dispatcher, port=port)
    )


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--port", type=int, default=0, help="default: any")
    parser.add_argument("--dispatcher", help="a worker of this host:port")
    options = parser.parse_args(arguments)
    server = serve(options.port, options.dispatcher)
    if options.dispatcher is None:
        print(f"Dispatcher: --data_service={server.target}", flush=True)
    else:
        print(f"Worker of {options.dispatcher}", flush=True)
    server.join()


if __name__ == "__main__":
    main()
