"""One training loop for every method and strategy."""

import collections
from concurrent import futures
import dataclasses
import time

import numpy as np
import tensorflow as tf
import tqdm

from tf_adapters import metrics
from tf_adapters.data import pipeline
from tf_adapters.layers.random import Seeds
from tf_adapters.training.optimizers import make_optimizer

# Losses are looked at this often: reading one waits for the device.
_STEPS_BETWEEN_CHECKS = 20


class NonFiniteLossError(RuntimeError):
    """The loss became NaN or infinite."""


class Trainer:
    """Trains a model's declared variables and evaluates it.

    The model must have been built in the strategy's scope. One train step and
    one eval step serve every strategy: gradients are summed over replicas, then
    clipped by their global norm, then applied.

    Args:
        model: `AdapterModel` with a head.
        strategy: `tf.distribute.Strategy`.
        config: `Config`.
        metric_names: Names in `tf_adapters.metrics`; the first one selects.
    """

    def __init__(self, model, strategy, config, metric_names):
        self.model = model
        self.strategy = strategy
        self.config = config
        self.metric_names = metric_names
        self.variables = list(model.trained_variables().values())
        self.optimizer = None
        self._train_step = self._eval_step = None

    def fit(self, train, validation, log, save_best):
        """Trains and leaves the best weights in the model.

        Args:
            train: `Examples`.
            validation: `Examples`.
            log: Function of a dict, called at every check and validation.
            save_best: Function of a dict of metrics, called when the first
                metric is better than ever.

        Returns:
            Dict with `validation` (metrics of the best weights), `best_step`,
            `mean_metric` over validations, `steps`, `examples`, `seconds` spent
            in training steps, and `padding_share`.

        Raises:
            NonFiniteLossError: If the loss is not finite; names the step.
        """
        loop = _Loop(self, train, validation, log, save_best)
        return loop.run()

    def evaluate(self, examples):
        """Returns the metrics of all of `examples`."""
        return metrics.compute(
            self.metric_names,
            examples.targets,
            self.model.head.predictions(self.predict(examples)),
        )

    def predict(self, examples):
        """Returns the model's outputs, one row for each example, in order."""
        fixed = None
        if self.config.data.batching == "fixed":
            fixed = self.config.data.max_length
        batches = pipeline.plan_evaluation(
            examples.lengths, self.config.train.eval_batch_size, fixed
        )
        rows, places = [], []
        for outputs, indices in self.eval_steps(examples, batches):
            rows.append(self._gathered(outputs))
            places.append(self._gathered(indices))
        order = np.argsort(np.concatenate(places), kind="stable")
        return np.concatenate(rows)[order]

    def eval_steps(self, examples, batches):
        """Yields outputs and places of the examples of each batch, in order.

        On one device two batches are computed at a time: the small operations
        of one leave cores idle that the other one uses.
        """
        unlabelled = dataclasses.replace(examples, targets=None)
        batches = self._distribute(unlabelled, batches)
        if self._eval_step is None:
            self._eval_step = _one_trace(self._eval_on_replicas, batches)
        at_once = 2 if self.strategy.num_replicas_in_sync == 1 else 1
        yield from _map_in_order(self._eval_step, batches, at_once)

    def _gathered(self, value):
        parts = self.strategy.experimental_local_results(value)
        return np.concatenate([part.numpy() for part in parts])

    def _distribute(self, examples, batches):
        replicas = self.strategy.num_replicas_in_sync

        def build(context):
            local = replicas // context.num_input_pipelines
            first = context.input_pipeline_id * local
            return pipeline.dataset(
                examples, batches, replicas, range(first, first + local)
            )

        return self.strategy.distribute_datasets_from_function(build)

    def _eval_on_replicas(self, features):
        def step(features):
            inputs = _without(features, ("indices", "weights"))
            return self.model(inputs, training=False), features["indices"]

        return self.strategy.run(step, args=(features,))

    def prepare_training(self, total_steps):
        """Creates the optimiser and the train step."""
        with self.strategy.scope():
            self.optimizer = make_optimizer(
                self.config.train, total_steps, self.variables
            )
        # A step is traced with its optimiser.
        self._train_step = None

    def train_steps(self, examples, batches):
        """Yields loss and gradient norms of each step over `batches`."""
        batches = self._distribute(examples, batches)
        if self._train_step is None:
            self._train_step = _one_trace(self._train_on_replicas, batches)
        for features in batches:
            yield self._train_step(features)

    def _train_on_replicas(self, features):
        losses, norms = self.strategy.run(self._replica_step, args=(features,))
        loss = self.strategy.reduce(tf.distribute.ReduceOp.SUM, losses, None)
        return loss, self.strategy.experimental_local_results(norms)[0]

    def _replica_step(self, features):
        replica = tf.distribute.get_replica_context()
        values = [variable.value for variable in self.variables]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(values)
            loss = self._loss(features, replica)
        gradients = tape.gradient(loss, values)
        gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        gradients = replica.all_reduce(tf.distribute.ReduceOp.SUM, gradients)
        norms = tf.stack([tf.norm(gradient) for gradient in gradients])
        gradients, _ = tf.clip_by_global_norm(
            gradients, self.config.train.clip_norm, use_norm=tf.norm(norms)
        )
        # The optimiser sums over replicas once more; by then all hold the same.
        replicas = self.strategy.num_replicas_in_sync
        if replicas > 1:
            gradients = [gradient / replicas for gradient in gradients]
        self.optimizer.apply(gradients, self.variables)
        return loss, norms

    def dropout_seed(self, replica):
        """Returns this step's seed: a function of run, replica and step."""
        step = tf.cast(self.optimizer.iterations.value, tf.int32)
        number = tf.cast(replica.replica_id_in_sync_group, tf.int32)
        # Two numbers a replica: the encoder's draws and the head's.
        return tf.stack(
            [
                (self.config.seed % 32768) * 65536 + 2 * number,
                step * Seeds.DRAWS_PER_PASS,
            ]
        )

    def _loss(self, features, replica):
        """Returns this replica's part of the batch's mean loss and penalty."""
        inputs = _without(features, ("indices", "targets", "weights"))
        seed = self.dropout_seed(replica)
        outputs = self.model(inputs, training=True, seed=seed)
        losses = self.model.head.loss(features["targets"], outputs)
        penalty = self.model.penalty() / self.strategy.num_replicas_in_sync
        return tf.reduce_sum(losses * features["weights"]) + penalty


def _one_trace(function, batches):
    """Returns a `tf.function` that is traced once, for batches of any size."""
    return tf.function(function, input_signature=[batches.element_spec])


def _map_in_order(function, items, at_once):
    """Yields `function(item)` in order, computing `at_once` of them together.

    No more than `at_once` results wait to be taken.
    """
    with futures.ThreadPoolExecutor(at_once) as pool:
        pending = collections.deque()
        for item in items:
            pending.append(pool.submit(function, item))
            if len(pending) > at_once:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


def _without(features, names):
    return {key: v for key, v in features.items() if key not in names}


class _Loop:
    """The state of one call of `Trainer.fit`."""

    def __init__(self, trainer, train, validation, log, save_best):
        self.trainer = trainer
        self.settings = trainer.config.train
        self.train = train
        self.validation = validation
        self.log = log
        self.save_best = save_best
        self.plans = [self._plan(e) for e in range(self.settings.epochs)]
        self.total_steps = sum(len(plan) for plan in self.plans)
        self.step = 0
        self.examples = 0
        self.seconds = 0.0
        self.pending = []
        self.history = []
        self.best = None
        self.best_weights = None

    def _plan(self, epoch):
        config = self.trainer.config
        return pipeline.plan_training(
            self.train.lengths,
            config.train.batch_size,
            config.seed,
            epoch,
            config.data.batching,
            config.data.max_length,
        )

    def run(self):
        self.trainer.prepare_training(self.total_steps)
        with tqdm.tqdm(
            total=sum(len(b.indices) for plan in self.plans for b in plan),
            unit="ex",
            desc="building the graph",
            dynamic_ncols=True,
        ) as self.bar:
            for epoch, plan in enumerate(self.plans):
                self._run_epoch(epoch, plan)
                if self._stops_early():
                    break
        variables = self.trainer.variables
        for variable, value in zip(variables, self.best_weights, strict=True):
            variable.assign(value)
        return self._summary()

    def _summary(self):
        name = self.trainer.metric_names[0]
        return {
            "validation": self.best["validation"],
            "best_step": self.best["step"],
            "mean_metric": float(
                np.mean([entry["validation"][name] for entry in self.history])
            ),
            "steps": self.step,
            "examples": self.examples,
            "seconds": round(self.seconds, 3),
            "padding_share": round(
                pipeline.padding_share(
                    [b for plan in self.plans for b in plan], self.train.lengths
                ),
                4,
            ),
        }

    def _run_epoch(self, epoch, plan):
        every = self.settings.validate_every_steps
        started = time.perf_counter()
        steps = self.trainer.train_steps(self.train, plan)
        for batch, (loss, norms) in zip(plan, steps, strict=True):
            self.step += 1
            self.examples += len(batch.indices)
            self.pending.append((self.step, loss))
            self.bar.update(len(batch.indices))
            last = batch is plan[-1]
            if self.step % _STEPS_BETWEEN_CHECKS == 0 or last or self.step == 1:
                self._check(epoch)
            if last or (every and self.step % every == 0):
                self._check(epoch)
                self.seconds += time.perf_counter() - started
                self._validate(epoch, norms)
                started = time.perf_counter()
                if self._stops_early():
                    return

    def _check(self, epoch):
        """Reads the losses since the last check, and stops at a bad one."""
        if not self.pending:
            return
        losses = [(step, float(loss)) for step, loss in self.pending]
        self.pending = []
        for step, loss in losses:
            if not np.isfinite(loss):
                raise NonFiniteLossError(
                    f"The loss of step {step} is {loss}. Steps before it were "
                    "finite. Lower --learning_rate, or look at the examples of "
                    f"that step (epoch {epoch}, seed "
                    f"{self.trainer.config.seed})."
                )
        mean = float(np.mean([loss for _, loss in losses]))
        self.log(
            {
                "step": self.step,
                "epoch": epoch,
                "loss": round(mean, 6),
                "learning_rate": float(self.trainer.optimizer.learning_rate),
                "examples": self.examples,
            }
        )
        self.bar.set_description(f"epoch {epoch + 1}, loss {mean:.3f}")

    def _validate(self, epoch, norms):
        values = self.trainer.evaluate(self.validation)
        entry = {"step": self.step, "epoch": epoch, "validation": values}
        if self.settings.log_gradient_norms:
            names = self.trainer.model.trained_variables()
            entry["gradient_norms"] = dict(
                zip(names, map(float, norms.numpy()), strict=True)
            )
        self.log(entry)
        self.history.append(entry)
        name = self.trainer.metric_names[0]
        self.bar.set_postfix({name: f"{values[name]:.3f}"})
        if self.best is None or values[name] > self.best["validation"][name]:
            self.best = entry
            self.best_weights = [v.numpy() for v in self.trainer.variables]
            self.save_best(values)

    def _stops_early(self):
        patience = self.settings.early_stopping_patience
        if patience is None or self.best is None:
            return False
        since_best = len(self.history) - 1 - self.history.index(self.best)
        return since_best >= patience
