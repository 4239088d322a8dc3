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
    """The batches of all epochs, and the steps after which the host acts.

    Args:
        trainer: See `TrainerProtocol`.
        examples: Training data of the trainer: `Examples` or `Mixture`.
        saves_snapshots: Whether snapshots are saved at all.

    Attributes:
        plans: List with the batches of each epoch.
        batches: All batches of the run, in order.
        examples_after: Number of examples seen, indexed by the number of steps
            done.
        last_phase: Number of steps after which the model's last phase starts.
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
        """Yields lists of batches, each for one device call.

        A list ends whenever the host has something to do between steps.

        Args:
            plan: The remaining batches of an epoch.
            steps_done: Number of steps before them.
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
        """Returns whether a validation follows a step.

        Args:
            step: Number of steps done.
            is_last: Whether the step is the last of its epoch.
        """
        every = self._validation_steps
        return is_last or bool(every and step % every == 0)

    def is_snapshot(self, step: int) -> bool:
        """Returns whether a snapshot is saved after a step."""
        every = self._snapshot_steps
        return bool(self._saves_snapshots and every and step % every == 0)


def _plans(
    plan: Callable[[int], list[Batch]], settings: TrainConfig
) -> Iterator[list[Batch]]:
    """Yields each epoch's batches until `epochs` and `min_steps` are met."""
    epoch, steps = 0, 0
    while epoch < settings.epochs or steps < (settings.min_steps or 0):
        batches = plan(epoch)
        yield batches
        epoch, steps = epoch + 1, steps + len(batches)


def _first_steps(
    plans: Iterable[list[Batch]], max_steps: int | None
) -> list[list[Batch]]:
    """Returns each epoch's batches, cut off after `max_steps` if given."""
    kept, left = [], max_steps
    for plan in plans:
        plan = plan[:left]
        if not plan:
            break
        kept.append(plan)
        left = None if left is None else left - len(plan)
    return kept
