"""Communication between the processes of a training run.

Under `MultiWorkerMirroredStrategy`, each worker runs the same program on its
own part of each batch. Only the first worker, the chief, writes the run folder,
and it reports to the others where to resume. Other strategies have a single
process, which does not communicate.
"""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import functools
from typing import Any

import numpy as np
from safetensors.numpy import load
from safetensors.numpy import save
import tensorflow as tf

from tf_adapters.common.errors import Stopped

# Maximum number of bytes per message. Sending a message takes several times its
# size in memory.
_AT_ONCE = 1 << 27
# Errors that TensorFlow can raise in a worker when another worker is lost.
_LOST = (
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.InternalError,
    tf.errors.UnavailableError,
    tf.errors.UnknownError,
)


def num_workers(strategy: tf.distribute.Strategy) -> int:
    """Returns the number of processes that train together."""
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return 1
    jobs = strategy.cluster_resolver.cluster_spec().as_dict()
    return sum(len(jobs.get(job, ())) for job in ("chief", "worker")) or 1


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Returns whether this process writes the run folder."""
    return num_workers(strategy) == 1 or _first_replica(strategy) == 0


def _first_replica(strategy: tf.distribute.Strategy) -> int:
    """Returns the smallest index of this worker's replicas.

    The replicas of all workers are numbered from 0.
    """
    contexts = []
    strategy.experimental_distribute_values_from_function(
        lambda context: contexts.append(context) or tf.constant(0)
    )
    return min(context.replica_id_in_sync_group for context in contexts)


def sum_over_workers(
    strategy: tf.distribute.Strategy, array: np.ndarray
) -> np.ndarray:
    """Sums an array of integers over all workers. Each worker gets the sum.

    The sum is computed in float64, which is exact up to 2**53. TensorFlow keeps
    int32 tensors in the memory of the host, even for a GPU, while the sum over
    GPUs reads the memory of the devices.
    """
    if num_workers(strategy) == 1:
        return array
    first = _first_replica(strategy)

    def of_replica(
        context: tf.distribute.experimental.ValueContext,
    ) -> tf.Tensor:
        # Each worker counts once, even with several replicas.
        mine = context.replica_id_in_sync_group == first
        return tf.constant(array if mine else np.zeros_like(array), "float64")

    values = strategy.experimental_distribute_values_from_function(of_replica)
    total = sum_function(strategy)(values)
    local = strategy.experimental_local_results(total)[0].numpy()
    return local.astype(array.dtype)


@functools.cache
def sum_function(strategy: tf.distribute.Strategy) -> Callable[[Any], Any]:
    """Returns a `tf.function` that sums a tensor over all replicas.

    The function is cached for each strategy, so that it is not traced again for
    shapes that it has seen.
    """

    def of_replica(value: tf.Tensor) -> tf.Tensor:
        replica = tf.distribute.get_replica_context()
        # The sum needs a tensor on a device, unlike the argument of a graph.
        value = tf.identity(value)
        return replica.all_reduce(tf.distribute.ReduceOp.SUM, value)

    @tf.function(autograph=False)
    def run(values: Any) -> Any:
        return strategy.run(of_replica, (values,))

    return run


def any_of(strategy: tf.distribute.Strategy, flag: bool) -> bool:
    """Returns whether `flag` is true on any worker."""
    return bool(sum_over_workers(strategy, np.array(flag, "int32")))


def wait_for_all(strategy: tf.distribute.Strategy) -> None:
    """Blocks until all workers have called this function."""
    sum_over_workers(strategy, np.array(0, "int32"))


def gather_bytes(
    strategy: tf.distribute.Strategy, content: bytes
) -> list[bytes]:
    """Sends the bytes of each worker to all workers.

    Args:
        strategy: `tf.distribute.Strategy`.
        content: Bytes of this worker.

    Returns:
        List of the workers' bytes, in the order of the workers, without those
        that are empty.
    """
    number = _first_replica(strategy)
    sizes = np.zeros(strategy.num_replicas_in_sync, "int64")
    sizes[number] = len(content)
    sizes = sum_over_workers(strategy, sizes)
    ends = np.cumsum(-(-sizes // 4))
    if not ends[-1]:
        return []  # TensorFlow crashes when it sums an empty array.
    # The length is rounded up to a power of two, because each length needs its
    # own graph.
    words = np.zeros(1 << int(ends[-1] - 1).bit_length(), "uint32")
    start = 4 * (ends[number] - -(-len(content) // 4))
    place = slice(start, start + len(content))
    words.view("uint8")[place] = np.frombuffer(content, "uint8")
    # The sum is exact, because all terms but one are 0.
    total = sum_over_workers(strategy, words)[: ends[-1]]
    parts = np.split(total, ends[:-1])
    return [
        part.tobytes()[:size]
        for part, size in zip(parts, sizes, strict=True)
        if size
    ]


def broadcast_from_chief(
    strategy: tf.distribute.Strategy, content: bytes
) -> bytes:
    """Sends the chief's bytes to all workers, and returns these bytes.

    Args:
        strategy: `tf.distribute.Strategy`.
        content: Bytes on the chief; ignored on other workers.
    """
    mine = content if is_chief(strategy) else b""
    count = np.array(-(-len(mine) // _AT_ONCE), "int32")
    return b"".join(
        part
        for start in range(int(sum_over_workers(strategy, count)))
        for part in gather_bytes(
            strategy, mine[start * _AT_ONCE : (start + 1) * _AT_ONCE]
        )
    )


def gather_rows(
    strategy: tf.distribute.Strategy, rows: list[np.ndarray | None]
) -> list[np.ndarray]:
    """Fills in the rows that other workers computed.

    Args:
        strategy: `tf.distribute.Strategy`.
        rows: List with an array for each row that this worker computed, and
            `None` for all other rows.

    Returns:
        List of all rows, the same on each worker.
    """
    complete: list[Any] = list(rows)
    if num_workers(strategy) == 1:
        return complete
    mine = {str(i): np.array(r) for i, r in enumerate(rows) if r is not None}
    for content in gather_bytes(strategy, save(mine)):
        for place, row in load(content).items():
            complete[int(place)] = row
    return complete


@contextlib.contextmanager
def losses_as_stops(strategy: tf.distribute.Strategy) -> Iterator[None]:
    """Context manager that raises `Stopped` if another worker is lost.

    Raises:
        Stopped: If a worker is lost in the `with` block. Starting the same
            command again on all workers resumes the run.
    """
    try:
        yield
    except _LOST as error:
        if num_workers(strategy) == 1:
            raise
        reason = str(error).splitlines()[0]
        raise Stopped(
            f"Another worker is gone ({reason}). Start the same command on all "
            "workers, without --overwrite: it resumes from the last "
            "checkpoint."
        ) from error
