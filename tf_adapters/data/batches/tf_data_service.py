"""Training batches from a tf.data service, in the order that was asked for.

    python -m tf_adapters.data.batches.tf_data_service --port=5050
    python -m tf_adapters.data.batches.tf_data_service --dispatcher=host:5050
    python train.py ... --cache_dir=<folder> --data_service=grpc://host:5050

The first command is the dispatcher. The second is a worker, on any machine that
sees the cache folder under the same path, as often as wanted. The service hands
batches to workers as they ask, and gives them back as they are done: each
carries its number, and waits here until it is its turn. So a run is the same,
bit for bit, as without.
"""

import argparse
import logging
import queue
import socket
import threading
import urllib.parse

import tensorflow as tf

from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import UserError

_LOGGER = logging.getLogger(__name__)
_CONNECT_SECONDS = 5
# Without a batch for so long: a warning, and so many of them: the end. Nothing
# else would end it, since TensorFlow asks a dead worker again without end.
_WARNING_SECONDS = 30
_MAX_WARNINGS = 3
# So many batches are done before one that is missing: its worker is gone.
_MAX_WAITING = 1000
_READ_AHEAD = 16


# Raised inside a graph, a ValueError is an InvalidArgumentError there, whose
# text `user_errors` reads. Others are an UnknownError, which between the
# processes of one training means that one of those is gone.
class LostBatchError(ValueError):
    """A worker of the service ended with a batch that nobody else has."""


def computed_on_service(plan, function, address):
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
    elements = (
        plan.map(lambda number, *parts: (number, function(*parts)))
        .apply(
            tf.data.experimental.service.distribute(
                # Each batch is made by one of the workers, whoever is free.
                tf.data.experimental.service.ShardingPolicy.DYNAMIC,
                address,
            )
            # The end is then known here, whoever is gone by then.
        )
        .take(count)
    )
    return tf.data.Dataset.from_generator(
        lambda: in_order(_patiently(elements, address), count),
        output_signature=elements.element_spec[1],
    )


def _check_answers(address):
    """TensorFlow would try for hours."""
    parts = urllib.parse.urlsplit(address)
    try:
        if parts.scheme != "grpc" or not parts.hostname or not parts.port:
            raise UserError("expected grpc://host:port")
        place = (parts.hostname, parts.port)
        socket.create_connection(place, _CONNECT_SECONDS).close()
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"The tf.data service at --data_service={address} does not answer: "
            f"{error}. Start it with `python -m "
            "tf_adapters.data.batches.tf_data_service`, or leave the flag out."
        ) from error


def _patiently(elements, address):
    """Yields the elements, read in a thread.

    Raises:
        LostBatchError: If there is none for long.
    """
    found, closed = queue.Queue(_READ_AHEAD), threading.Event()
    reader = (elements, found, closed)
    threading.Thread(target=_read, args=reader, daemon=True).start()
    try:
        while True:
            element, error = _next(found, address)
            if error is not None:
                raise error
            if element is None:
                return
            yield element
    finally:
        # The thread may be waiting for room.
        closed.set()
        while not found.empty():
            found.get_nowait()


def _read(elements, found, closed):
    """Puts pairs of an element and an error; the last one has no element."""
    error = None
    try:
        for element in elements:
            if closed.is_set():
                return
            found.put((element, None))
    except Exception as caught:
        error = caught
    found.put((None, error))


def _next(found, address):
    for warnings in range(1, _MAX_WARNINGS + 1):
        try:
            return found.get(timeout=_WARNING_SECONDS)
        except queue.Empty:
            _LOGGER.warning(
                "No batch from the tf.data service at %s in %g seconds. Has it "
                "workers, do they run, and do they see the cache folder under "
                "the same path?",
                address,
                warnings * _WARNING_SECONDS,
            )
    raise LostBatchError(
        f"No batch came from the tf.data service at {address} in "
        f"{_MAX_WARNINGS * _WARNING_SECONDS:g} seconds: it has no workers, or "
        "one has ended with batches that nobody else has. See that workers "
        "run; the same command goes on from the last checkpoint."
    )


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
        if turn == count:
            return  # The service may not say that this was all.
        if len(waiting) > _MAX_WAITING:
            break
    if turn < count:
        raise LostBatchError(
            f"Batch {turn} of {count} did not come from the tf.data service: a "
            "worker of it has ended. The same command goes on from the last "
            "checkpoint."
        )


def serve(port=0, dispatcher=None, host="localhost"):
    """Returns a server that has been started: a dispatcher, or a worker of one.

    Args:
        port: Port of a dispatcher; 0 (default) for one that is free.
        dispatcher: Address of a worker's dispatcher, `"host:port"`; `None`
            (default) for a dispatcher.
        host: Where runs find a worker; `"localhost"` (default) for runs on
            this machine.
    """
    service = tf.data.experimental.service
    if dispatcher is None:
        return service.DispatchServer(service.DispatcherConfig(port=port))
    return service.WorkerServer(
        service.WorkerConfig(
            dispatcher_address=dispatcher,
            port=port,
            worker_address=f"{host}:%port%",
            data_transfer_address=f"{host}:%dts_port%",
        )
    )


def this_host():
    """Returns this machine's name, or `"localhost"` where nobody knows it."""
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return "localhost"
    return name


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--port", type=int, default=0, help="default: any")
    parser.add_argument("--dispatcher", help="a worker of this host:port")
    parser.add_argument(
        "--host",
        default=this_host(),
        help="name or address of this machine that the others can reach; "
        "default: its name if it resolves, else localhost (now: %(default)s)",
    )
    options = parser.parse_args(arguments)
    server = serve(options.port, options.dispatcher, options.host)
    if options.dispatcher is None:
        port = server.target.rpartition(":")[2]
        print(
            f"Dispatcher: --data_service=grpc://{options.host}:{port}",
            flush=True,
        )
    else:
        print(f"Worker of {options.dispatcher} at {options.host}", flush=True)
    server.join()


if __name__ == "__main__":
    main()
