"""Trains several models that share variables, one model per batch."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING
from typing import Any

from keras import ops
import numpy as np

from tf_adapters.data.batches import task_mixture
from tf_adapters.training.optimizers import make_optimizer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tf_adapters.common.types import Tensor
    from tf_adapters.data.batches.batch_plan import Batch
    from tf_adapters.data.batches.task_mixture import Mixture
    from tf_adapters.training.optimizers import AdamWOfSums
    from tf_adapters.training.trainer import Trainer


class MultiTaskTrainer:
    """Combines the trainers of several tasks into one that `Loop` can use.

    Each batch belongs to one task, and the task's own `Trainer` trains on it,
    so there is one graph per task. A single optimizer holds the variables of
    all tasks. A step changes only the variables of its own task: momentum and
    weight decay do not affect the others. The step count in Adam's bias
    correction includes the steps of all tasks.

    Args:
        model: `MultiTaskModel`.
        trainers: Dict from the name of a task to the `Trainer` of its model.
        sampling: Name of the rule by which the task of each batch is drawn; see
            `task_mixture.probabilities`.
    """

    metric_names: tuple[str, ...] = ("mean",)

    def __init__(
        self, model: Any, trainers: dict[str, Trainer], sampling: str
    ) -> None:
        self.model = model
        self.trainers = trainers
        self.sampling = sampling
        # Settings and seed are the same for all tasks.
        self._first = next(iter(trainers.values()))
        self.settings, self.seed = self._first.settings, self._first.seed
        trained = model.trained_variables()
        self.names, self.variables = list(trained), list(trained.values())
        # `None` before `prepare_training`.
        self.optimizer: AdamWOfSums | Any = None
        indices = {id(v): i for i, v in enumerate(self.variables)}
        self._places = {
            task: np.array([[indices[id(v)]] for v in trainer.variables])
            for task, trainer in trainers.items()
        }

    @property
    def programs(self) -> list[Any]:
        """The programs that were compiled so far, of all tasks."""
        return [one for t in self.trainers.values() for one in t.programs]

    def plan(self, examples: Mixture, epoch: int) -> list[Batch]:
        """Returns the batches of one epoch, see `task_mixture.plan_mixture`."""
        return task_mixture.plan_mixture(
            examples,
            self._first.plan,
            self.sampling,
            self.settings,
            self.seed,
            epoch,
        )

    def prepare_training(self, total_steps: int) -> None:
        """Creates the optimizer, which the trainers of all tasks share."""
        with self._first.strategy.scope():
            self.optimizer = make_optimizer(
                self.settings,
                [(total_steps, 1.0)],
                self.variables,
                self._first.model.computes_in_float16,
                self._first.optimizer_class,
            )
        for trainer in self.trainers.values():
            trainer.use_optimizer(self.optimizer)

    def kind(self, examples: Mixture, batch: Batch) -> tuple[str, int | None]:
        """Returns a pair: the batch's task, and the task's own key for it.

        The key is what `kind` of the task's trainer returns for the batch.

        Batches with equal pairs can be trained on in one device call.
        """
        task, own = examples.locate(batch)
        return task, self.trainers[task].kind(examples.tasks[task], own)

    def train_loops(
        self, examples: Mixture, loops: list[list[Batch]]
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Trains on lists of batches, each in one device call.

        Args:
            examples: `Mixture`.
            loops: List of lists of `Batch`. The batches of a list have the
                same `kind`.

        Yields:
            For each list, the losses `(steps,)` and the norms of the gradients
            `(steps, variables)`. Variables that a step does not use have norm
            0.
        """
        located = collections.defaultdict(list)
        tasks = []
        for loop in loops:
            task, _ = examples.locate(loop[0])
            located[task].append([examples.locate(batch)[1] for batch in loop])
            tasks.append(task)
        results = {
            task: self.trainers[task].train_loops(examples.tasks[task], own)
            for task, own in located.items()
        }
        for task in tasks:
            losses, norms = next(results[task])
            spread = ops.scatter(
                self._places[task],
                ops.transpose(norms),
                (len(self.variables), losses.shape[0]),
            )
            yield losses, ops.transpose(spread)

    def evaluate(self, examples: Mixture) -> dict[str, float]:
        """Returns a dict with the metrics of all tasks, and their `mean`.

        The keys are `<task>/<metric>`. `mean` is the mean of the tasks' first
        metrics.
        """
        return self.judge(examples)[0]

    def judge(
        self, examples: Mixture
    ) -> tuple[dict[str, float], dict[str, Any]]:
        """Returns the metrics of `evaluate`, and predictions by task.

        The predictions are a dict from the name of a task to the predictions
        that its trainer's `judge` returned.
        """
        values, first, compared = {}, [], {}
        for task, trainer in self.trainers.items():
            own, compared[task] = trainer.judge(examples.tasks[task])
            first.append(own[trainer.metric_names[0]])
            values |= {f"{task}/{name}": value for name, value in own.items()}
        return {"mean": float(np.mean(first)), **values}, compared


def of_task(values: dict[str, float], task: str) -> dict[str, float]:
    """Returns a dict with one task's metrics.

    Args:
        values: Metrics of all tasks; see `MultiTaskTrainer.evaluate`.
        task: Name of the task, which is removed from the keys.
    """
    return {
        name.removeprefix(f"{task}/"): value
        for name, value in values.items()
        if name.startswith(f"{task}/")
    }
