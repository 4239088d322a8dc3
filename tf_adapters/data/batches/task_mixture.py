"""Mixes the examples of several tasks into one training set.

Each batch has examples of one task. The task is drawn with a probability
proportional to `N_i^a`, where `N_i` is the number of examples of task `i`. The
exponent `a` is 1 (proportional), 0.5 (square root), or falls from 1 to 0.2 over
the epochs (annealed): `a = 1 - 0.8 (e - 1) / (E - 1)` in epoch `e` of `E`
(Stickland and Murray 2019, arXiv:1902.02671; Bert-n-Pals, run_multi_task.py).
In epochs after the last of the `E`, it stays 0.2.

An epoch has as many batches as one pass over all tasks. A task's batches
continue from one epoch to the next, so that all its examples are seen once
before any is seen again.
"""

from collections.abc import Callable
from collections.abc import Iterator
import dataclasses
import math
from typing import TYPE_CHECKING
from typing import Any

import numpy as np

from tf_adapters.common.checks import check_known
from tf_adapters.data.examples import Examples

if TYPE_CHECKING:
    from tf_adapters.data.batches.batch_plan import Batch


@dataclasses.dataclass(frozen=True)
class Mixture:
    """Examples of several tasks, numbered consecutively, task by task.

    Attributes:
        tasks: Dict from task to `Examples`.
    """

    tasks: dict[str, Examples]

    def __len__(self) -> int:
        return sum(map(len, self.tasks.values()))

    @property
    def lengths(self) -> np.ndarray:
        """Number of tokens of each example."""
        return np.concatenate([e.lengths for e in self.tasks.values()])

    @property
    def sequence_lengths(self) -> np.ndarray:
        """Number of tokens of each choice, `(examples, most choices)`.

        The value is 0 if the example does not have that many choices, and -1
        if no example of its task does.
        """
        each = [e.sequence_lengths for e in self.tasks.values()]
        each = [lengths.reshape(len(lengths), -1) for lengths in each]
        width = max(lengths.shape[1] for lengths in each)
        return np.concatenate([_widen(x, width) for x in each])

    @property
    def sizes(self) -> np.ndarray:
        """Number of examples of each task."""
        return np.array([len(e) for e in self.tasks.values()])

    @property
    def starts(self) -> Any:
        """Index of each task's first example."""
        return np.cumsum(self.sizes) - self.sizes

    def locate(self, batch: "Batch") -> "tuple[str, Batch]":
        """Returns the name of a batch's task, and a copy of the batch.

        The indices in the copy refer to the task's own `Examples`.
        """
        number = int(
            np.searchsorted(self.starts, batch.indices[0], side="right") - 1
        )
        indices = batch.indices - self.starts[number]
        task = list(self.tasks)[number]
        return task, dataclasses.replace(batch, indices=indices)


def _widen(lengths: Any, width: int) -> np.ndarray:
    missing = width - lengths.shape[1]
    return np.pad(lengths, ((0, 0), (0, missing)), constant_values=-1)


def probabilities(sizes: Any, sampling: str, epoch: int, epochs: int) -> Any:
    """Returns each task's share of the batches of an epoch.

    Args:
        sizes: Number of examples of each task.
        sampling: `"annealed"`, `"proportional"` or `"square_root"`.
        epoch: Integer, 0 for the first.
        epochs: Integer, the number of epochs. If it is 1, annealed sampling is
            proportional.
    """
    last = epochs - 1
    exponents = {
        "annealed": 1 - 0.8 * min(epoch, last) / max(1, last),
        "proportional": 1.0,
        "square_root": 0.5,
    }
    check_known("sampling of tasks", sampling, exponents)
    shares = np.asarray(sizes, "float64") ** exponents[sampling]
    return shares / shares.sum()


def plan_mixture(
    mixture: Mixture,
    plan: Callable[..., Any],
    sampling: str,
    settings: Any,
    seed: int,
    epoch: int,
) -> list[Any]:
    """Returns the training batches of an epoch.

    The result depends on the arguments only.

    Args:
        mixture: `Mixture`.
        plan: Function that takes a task's `Examples` and an epoch, and returns
            the epoch's list of `Batch`.
        sampling: See `probabilities`.
        settings: `TrainConfig`.
        seed: Integer.
        epoch: Integer, 0 for the first.

    Returns:
        List of `Batch` with indices into `mixture`.
    """
    draws = [
        _draw(mixture.sizes, sampling, settings, seed, e)
        for e in range(epoch + 1)
    ]
    earlier = np.concatenate([[], *draws[:-1]])
    streams = [
        _batches(examples, start, plan, int((earlier == i).sum()))
        for i, (examples, start) in enumerate(
            zip(mixture.tasks.values(), mixture.starts, strict=True)
        )
    ]
    return [next(streams[i]) for i in draws[-1]]


def _draw(
    sizes: Any, sampling: str, settings: Any, seed: int, epoch: int
) -> np.ndarray:
    """Draws a task for each batch of an epoch, and returns their indices."""
    batches = sum(math.ceil(size / settings.batch_size) for size in sizes)
    shares = probabilities(sizes, sampling, epoch, settings.epochs)
    # This differs from the seed that orders the examples of this epoch.
    generator = np.random.default_rng([seed, epoch, len(sizes)])
    return generator.choice(len(sizes), batches, p=shares)


def _batches(examples: Any, start: Any, plan: Any, skip: Any) -> Iterator[Any]:
    """Yields a task's batches endlessly, after the batches of earlier epochs.

    Args:
        examples: The task's `Examples`.
        start: Index of the task's first example in the mixture.
        plan: See `plan_mixture`.
        skip: Integer, the number of batches used in earlier epochs.
    """
    turn, skip = divmod(skip, len(plan(examples, 0)))
    while True:
        for batch in plan(examples, turn)[skip:]:
            yield dataclasses.replace(batch, indices=batch.indices + start)
        turn, skip = turn + 1, 0
