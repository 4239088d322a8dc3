"""Training several models that share variables, each batch with one of them."""

import collections

import numpy as np
import tensorflow as tf

from tf_adapters.data.batches import task_mixture
from tf_adapters.training.optimizers import make_optimizer


class MultiTaskTrainer:
    """The trainers of several tasks as one, for `Loop`.

    A batch is of one task, and its step is that of the task's own `Trainer`;
    so there is one graph a task. One optimiser knows the variables of all. A
    step moves only the variables of its task: neither momentum nor weight decay
    touches those of the others. Adam's correction of its averages counts the
    steps of all tasks.

    Args:
        model: `MultiTaskModel`.
        trainers: Dict from task to `Trainer` of its model.
        config: `Config` of the whole run.
    """

    metric_names = ("mean",)

    def __init__(self, model, trainers, config):
        self.model = model
        self.trainers = trainers
        self.config = config
        trained = model.trained_variables()
        self.names, self.variables = list(trained), list(trained.values())
        self.optimizer = None
        indices = {id(v): i for i, v in enumerate(self.variables)}
        self._places = {
            task: tf.constant([[indices[id(v)]] for v in trainer.variables])
            for task, trainer in trainers.items()
        }

    def plan(self, examples, epoch):
        """Returns the batches of one epoch, see `mixture.plan_training`."""
        return task_mixture.plan_mixture(examples, self.config, epoch)

    def prepare_training(self, total_steps):
        """Creates the optimiser."""
        trainers = self.trainers.values()
        first = next(iter(trainers))
        with first.strategy.scope():
            self.optimizer = make_optimizer(
                self.config.train,
                [(total_steps, 1.0)],
                self.variables,
                first.model.computes_in_float16,
            )
        for trainer in trainers:
            trainer.use_optimizer(self.optimizer)

    def kind(self, examples, batch):
        """Returns what the batches of one loop on the device have in common."""
        task, own = examples.locate(batch)
        return task, self.trainers[task].kind(examples.tasks[task], own)

    def train_loops(self, examples, loops):
        """Yields each loop's losses `(steps,)` and norms `(steps, variables)`.

        The norm of a variable that a step does not use is 0.
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
            spread = tf.scatter_nd(
                self._places[task],
                tf.transpose(norms),
                [len(self.variables), losses.shape[0]],
            )
            yield losses, tf.transpose(spread)

    def evaluate(self, examples):
        """Returns `<task>/<metric>` for each, and `mean`.

        `mean` is the mean over the tasks of the first metric of each.
        """
        return self.judge(examples)[0]

    def judge(self, examples):
        """Returns what `evaluate` does, and each task's predictions by task."""
        values, first, compared = {}, [], {}
        for task, trainer in self.trainers.items():
            own, compared[task] = trainer.judge(examples.tasks[task])
            first.append(own[trainer.metric_names[0]])
            values |= {f"{task}/{name}": value for name, value in own.items()}
        return {"mean": float(np.mean(first)), **values}, compared


def of_task(values, task):
    """Returns the metrics of one task among those that `evaluate` returned."""
    return {
        name.removeprefix(f"{task}/"): value
        for name, value in values.items()
        if name.startswith(f"{task}/")
    }
