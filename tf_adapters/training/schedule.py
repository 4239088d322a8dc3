"""Which batches a run trains on, and after which steps it pauses."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Iterable
    from collections.abc import Iterator

    from tf_adapters.config.settings import TrainConfig
    from tf_adapters.data.batches.batch_plan import Batch
    from tf_adapters.data.batches.task_mixture import Mixture
    from tf_adapters.data.examples import Examples
    from tf_adapters.training.trainer_protocol import TrainerProtocol


class Schedule:
    """The batches of all epochs, and the steps after which training pauses.

    It pauses to validate, to save a snapshot, or to start the last phase.

    Args:
        trainer: See `TrainerProtocol`.
        examples: Training data of the trainer: `Examples` or `Mixture`.
        saves_snapshots: Whether to save snapshots, if `train.snapshot_steps` is
            set.

    Attributes:
        plans: List with the batches of each epoch.
        batches: All batches of the run, in order.
        examples_after: Number of examples seen, indexed by the number of steps
            done.
        last_phase: Number of steps after which the last phase starts, for
            methods that train in several phases.
    """

    def __init__(
        self,
        trainer: TrainerProtocol,
        examples: Examples | Mixture,
        saves_snapshots: bool,
    ) -> None:
        settings = trainer.settings
        self._validation_steps = settings.validate_every_steps
        self._snapshot_steps = settings.snapshot_steps
        self._steps_per_loop = settings.steps_per_loop
        self._kind = lambda batch: trainer.kind(examples, batch)
        self._saves_snapshots = saves_snapshots
        self.plans = _first_steps(
            _plans(lambda epoch: trainer.plan(examples, epoch), settings),
            settings.max_steps,
        )
        self.batches = list(itertools.chain.from_iterable(self.plans))
        sizes = [len(batch.indices) for batch in self.batches]
        self.examples_after = [0, *itertools.accumulate(sizes)]
        self.last_phase = trainer.model.last_phase_step(len(self.batches))

    def loops(
        self, plan: list[Batch], steps_done: int
    ) -> Iterator[list[Batch]]:
        """Divides the batches of an epoch into lists, one per device call.

        A list ends where training pauses, where the next batch has another
        kind, or after `train.steps_per_loop` batches.

        Args:
            plan: The remaining batches of an epoch.
            steps_done: Number of steps done before these batches.
        """
        loop = []
        for step, batch in enumerate(plan, steps_done + 1):
            if loop and self._kind(batch) != self._kind(loop[0]):
                yield loop
                loop = []
            loop.append(batch)
            ends = self.validates(step, batch is plan[-1])
            ends |= step == self.last_phase or self.is_snapshot(step)
            if ends or len(loop) == self._steps_per_loop:
                yield loop
                loop = []

    def validates(self, step: int, is_last: bool) -> bool:
        """Returns whether to validate after a step.

        Args:
            step: Number of the step, starting at 1.
            is_last: Whether the step is the last of its epoch.
        """
        every = self._validation_steps
        return is_last or bool(every and step % every == 0)

    def is_snapshot(self, step: int) -> bool:
        """Returns whether to save a snapshot after a step."""
        every = self._snapshot_steps
        return bool(self._saves_snapshots and every and step % every == 0)


def _plans(
    plan: Callable[[int], list[Batch]], settings: TrainConfig
) -> Iterator[list[Batch]]:
    """Yields the batches of one epoch after another.

    Stops when the run has both `epochs` epochs and `min_steps` steps.

    Args:
        plan: Function from the number of an epoch to its batches.
        settings: `TrainConfig`.
    """
    epoch, steps = 0, 0
    while epoch < settings.epochs or steps < (settings.min_steps or 0):
        batches = plan(epoch)
        yield batches
        epoch, steps = epoch + 1, steps + len(batches)


def _first_steps(
    plans: Iterable[list[Batch]], max_steps: int | None
) -> list[list[Batch]]:
    """Returns a list of each epoch's batches, `max_steps` batches in total.

    Args:
        plans: The batches of each epoch.
        max_steps: Maximum number of batches, or `None` for all of them.
    """
    kept, left = [], max_steps
    for plan in plans:
        plan = plan[:left]
        if not plan:
            break
        kept.append(plan)
        left = None if left is None else left - len(plan)
    return kept
