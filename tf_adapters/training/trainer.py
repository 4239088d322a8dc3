"""Training and evaluation steps for all methods and strategies."""

import collections
import dataclasses
import itertools

import tensorflow as tf

from tf_adapters.common import progress_bar
from tf_adapters.common.errors import ConfigError
from tf_adapters.data.batches import batch_plan
from tf_adapters.data.batches import pipeline
from tf_adapters.layers import stateless_seeds
from tf_adapters.training import accumulation
from tf_adapters.training import graphs
from tf_adapters.training import workers
from tf_adapters.training.mean_loss import mean_loss
from tf_adapters.training.optimizers import make_optimizer


class Trainer:
    """Trains a model's declared variables and evaluates it.

    The model must be built in the strategy's scope. All strategies use the same
    train step and eval step: gradients are summed over replicas, then clipped
    by their global norm, then applied.

    Args:
        model: `AdapterModel` with a head.
        strategy: `tf.distribute.Strategy`.
        config: `Config`.
        metric_names: Names in `heads.metrics`. The first metric selects the
            best weights.
        trained: Dict from name to variable of the variables to train, or `None`
            (default) for all that the model declares.
    """

    def __init__(self, model, strategy, config, metric_names, trained=None):
        self.model = model
        self.strategy = strategy
        self.config = config
        self.metric_names = metric_names
        trained = model.trained_variables() if trained is None else trained
        self.names, self.variables = list(trained), list(trained.values())
        self.optimizer = None
        self._train_loop = None
        self._iterators = graphs.Iterators()
        self._eval_steps = {}

    def evaluate(self, examples):
        """Returns the metrics on all of `examples`."""
        return self.judge(examples)[0]

    def judge(self, examples, title=None):
        """Returns the metrics, and the predictions that a run stores.

        Args:
            examples: `Examples`.
            title: See `predict`.

        Returns:
            Dict of metrics, and the predictions from the head's `judge`.
        """
        head, outputs = self.model.head, self.predict(examples, title)
        values, compared = head.judge(
            self.metric_names, outputs, examples.targets, examples.source
        )
        # For masked language modeling, the loss is one of the metrics.
        if self.config.train.evaluate_loss and examples.targets is not None:
            values["loss"] = mean_loss(head, outputs, examples)
        return values, compared

    def predict(self, examples, title=None):
        """Returns a list with the model's outputs for each example, in order.

        Outputs with one row per token have the padded length of their batch.

        Args:
            examples: `Examples`.
            title: Title of a progress bar, shown if this takes long, or `None`
                (default) for no progress bar.
        """
        rows = [None] * len(examples)
        plans = self._evaluation_plans(examples.lengths, examples.costs)
        total = sum(map(len, plans))
        with progress_bar.progress_bar(
            total, title, unit="batch", delay=progress_bar.DELAY
        ) as bar:
            for plan in plans:
                self._predict_plan(examples, plan, rows, bar)
        return workers.gather_rows(self.strategy, rows)

    def _predict_plan(self, examples, plan, rows, bar):
        """Stores the outputs of some batches in `rows`."""
        step, batches = self.evaluation(examples, plan)
        batches = itertools.islice(batches, len(plan))
        for outputs, indices in self.eval_steps(step, batches):
            found = zip(
                self._gathered(indices), self._gathered(outputs), strict=True
            )
            for place, row in found:
                # Padding rows have index -1.
                if place >= 0:
                    rows[place] = row
            bar.update()

    def _evaluation_plans(self, lengths, costs=None):
        """Returns lists of batches. All batches of a list have equal shapes."""
        data = self.config.data
        plan = batch_plan.plan_evaluation(
            lengths,
            self.config.train.eval_batch_size,
            data.fixed_lengths,
            costs,
        )
        groups = itertools.groupby(plan, lambda batch: self.kind(None, batch))
        return [list(batches) for _, batches in groups]

    def evaluation(self, examples, batches):
        """Returns the eval step for some batches, and their features.

        Args:
            examples: `Examples`. Their targets are not used.
            batches: List of `Batch` with equal shapes.

        Returns:
            The traced step, and an iterator over the features of the batches.
            The iterator starts over after the last batch.
        """
        unlabeled = dataclasses.replace(examples, targets=None)
        batches = self._distribute(unlabeled, batches)
        # Static shapes depend on the padded length and on the data set's
        # maximum number of choices.
        shapes = repr(batches.element_spec)
        if shapes not in self._eval_steps:
            self._eval_steps[shapes] = graphs.one_trace(
                self._eval_on_replicas, batches
            )
        return self._eval_steps[shapes], self._iterators.over(batches)

    def eval_steps(self, step, batches):
        """Yields outputs and indices of the examples of each batch, in order.

        On a single device, two batches are computed in parallel: the small
        operations of one batch leave cores idle that the other can use.

        Args:
            step: See `evaluation`.
            batches: Some of the features from `evaluation`.
        """
        at_once = 2 if self.strategy.num_replicas_in_sync == 1 else 1
        yield from graphs.map_in_order(step, batches, at_once)

    def _gathered(self, value):
        """Returns the rows computed by this process's replicas."""
        parts = self.strategy.experimental_local_results(value)
        return [row for part in parts for row in part.numpy()]

    def _distribute(self, examples, batches):
        replicas = self.strategy.num_replicas_in_sync

        def build(context):
            local = replicas // context.num_input_pipelines
            first = context.input_pipeline_id * local
            data = pipeline.dataset(
                examples,
                batches,
                replicas,
                range(first, first + local),
            )
            # If the end were known, every step with several workers would
            # ask all of them whether there is another batch.
            return data.repeat()

        if isinstance(self.strategy, tf.distribute.OneDeviceStrategy):
            # There is nothing to distribute, and a distributed iterator ends
            # seconds late: its autotuning cannot be turned off (docs/log.md).
            return build(tf.distribute.InputContext())
        return self.strategy.distribute_datasets_from_function(build)

    def _eval_on_replicas(self, features):
        def step(features):
            inputs = _without(features, ("indices", "weights"))
            return self.model(inputs, training=False), features["indices"]

        return self.strategy.run(step, args=(features,))

    def plan(self, examples, epoch):
        """Returns the batches of one epoch, see `batch_plan.plan_epoch`."""
        return batch_plan.plan_epoch(
            examples.lengths, self.config, epoch, examples.costs
        )

    def kind(self, examples, batch):
        """Returns a key: batches with equal keys can share a device call."""
        return batch.length if batch.size else None

    def prepare_training(self, total_steps):
        """Creates the optimizer and the train step."""
        self._check_trains()
        self._check_places()
        with self.strategy.scope():
            optimizer = make_optimizer(
                self.config.train,
                self.model.phases(total_steps),
                self.variables,
                self.model.computes_in_float16,
            )
        self.use_optimizer(optimizer)

    def _check_trains(self):
        if not self.variables:
            raise ConfigError(
                "There is nothing to train: method and head have no weights "
                "that train. Choose another --method."
            )

    def _check_places(self):
        """Raises a `ConfigError` if parts of a step would share dropout."""
        replicas = self.strategy.num_replicas_in_sync
        most = stateless_seeds.MAX_PLACES // replicas
        parts = self.config.train.accumulation_steps
        if parts > most:
            raise ConfigError(
                f"`train.accumulation_steps` may be at most {most:,} on "
                f"{replicas} device(s), so that each part of a batch draws its "
                f"own dropout. Received: {parts}"
            )

    def use_optimizer(self, optimizer):
        """Sets the optimizer, which may hold other variables, too."""
        self.optimizer = optimizer
        # The step must be traced for this optimizer, once per kind of batch.
        self._train_loop = graphs.traced(self._loop_on_replicas)

    def train_loops(self, examples, loops):
        """Yields each loop's losses `(steps,)` and norms `(steps, variables)`.

        Args:
            examples: `Examples`.
            loops: List of lists of `Batch`. The batches of a list have the
                same `kind` and are trained in one device call.
        """
        kinds = [self.kind(examples, loop[0]) for loop in loops]
        batches = collections.defaultdict(list)
        for kind, loop in zip(kinds, loops, strict=True):
            batches[kind] += loop
        iterators = {
            kind: self._iterators.over(self._distribute(examples, some))
            for kind, some in batches.items()
        }
        for kind, loop in zip(kinds, loops, strict=True):
            yield self._train_loop(iterators[kind], tf.constant(len(loop)))

    def _loop_on_replicas(self, iterator, steps):
        if self.config.train.steps_per_loop == 1:
            loss, norms = self._train_on_replicas(iterator.get_next())
            return loss[tf.newaxis], norms[tf.newaxis]

        def train(step, losses, norms):
            loss, norm = self._train_on_replicas(iterator.get_next())
            return step + 1, losses.write(step, loss), norms.write(step, norm)

        _, losses, norms = tf.while_loop(
            lambda step, *_: step < steps,
            train,
            [0, *(tf.TensorArray("float32", steps) for _ in range(2))],
            parallel_iterations=1,
        )
        return losses.stack(), norms.stack()

    def _train_on_replicas(self, features):
        loss_scale = self.optimizer.loss_scale
        if loss_scale is None:
            losses, norms = self.strategy.run(
                self._replica_step, args=(features,)
            )
            norm = self.strategy.experimental_local_results(norms)[0]
        else:
            losses, gradients, norms = self.strategy.run(
                self._replica_gradients, args=(features,)
            )
            norm = self.strategy.experimental_local_results(norms)[0]
            loss_scale.apply_if_finite(
                norm,
                lambda: self.strategy.run(self._apply, args=(gradients, norms)),
            )
        loss = self.strategy.reduce(tf.distribute.ReduceOp.SUM, losses, None)
        return loss, norm

    def _replica_step(self, features):
        loss, gradients, norms = self._replica_gradients(features)
        self._apply(gradients, norms)
        return loss, norms

    def _replica_gradients(self, features):
        """Returns one replica's loss, and summed gradients and their norms."""
        replica = tf.distribute.get_replica_context()
        loss, gradients = accumulation.accumulate(
            lambda part, number: self._gradients(part, number, replica),
            features,
            self.config.train.accumulation_steps,
            [variable.shape for variable in self.variables],
        )
        gradients = replica.all_reduce(tf.distribute.ReduceOp.SUM, gradients)
        if self.optimizer.loss_scale is not None:
            gradients = self.optimizer.loss_scale.unscaled(gradients)
        norms = tf.stack([tf.norm(gradient) for gradient in gradients])
        return loss, gradients, norms

    def _apply(self, gradients, norms):
        if self.config.train.clip_norm is not None:
            gradients, _ = tf.clip_by_global_norm(
                gradients, self.config.train.clip_norm, use_norm=tf.norm(norms)
            )
        self.optimizer.apply(gradients, self.variables)

    def _gradients(self, features, number, replica):
        """Returns loss and gradients for one part of a replica's batch."""
        values = [variable.value for variable in self.variables]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(values)
            loss = scaled = self._loss(features, number, replica)
            if self.optimizer.loss_scale is not None:
                scaled = self.optimizer.loss_scale.scaled(loss)
        gradients = tape.gradient(scaled, values)
        return loss, [tf.convert_to_tensor(gradient) for gradient in gradients]

    def dropout_seed(self, replica, number=0):
        """Returns a seed that depends on run, replica, step and part."""
        step = tf.cast(self.optimizer.iterations.value, tf.int64)
        place = tf.cast(replica.replica_id_in_sync_group, tf.int64)
        place *= self.config.train.accumulation_steps
        place += tf.cast(number, tf.int64)
        return stateless_seeds.pass_seed(self.config.seed, place, step)

    def _loss(self, features, number, replica):
        """Returns a part's share of the batch's mean loss and the penalty."""
        inputs = _without(features, ("indices", "targets", "weights"))
        seed = self.dropout_seed(replica, number)
        outputs = self.model(inputs, training=True, seed=seed)
        losses = self.model.head.loss(features["targets"], outputs)
        parts = self.config.train.accumulation_steps
        parts *= self.strategy.num_replicas_in_sync
        penalty = self.model.penalty() / parts
        return tf.reduce_sum(losses * features["weights"]) + penalty


def _without(features, names):
    return {key: v for key, v in features.items() if key not in names}
