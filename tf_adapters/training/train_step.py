"""Training steps on all replicas, one or several in a device call."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING
from typing import Any

import tensorflow as tf

from tf_adapters.common.errors import ConfigError
from tf_adapters.layers import shared_graphs
from tf_adapters.layers import stateless_seeds
from tf_adapters.layers.shared_graphs import SharedGraphs
from tf_adapters.training import accumulation
from tf_adapters.training import graphs

if TYPE_CHECKING:
    from collections.abc import Callable

    import keras

    from tf_adapters.config.settings import TrainConfig
    from tf_adapters.training.compilation import Compiler
    from tf_adapters.training.half_kernels import HalfKernels
    from tf_adapters.training.optimizers import AdamWOfSums


class TrainStep:
    """Trains a model's variables on batches.

    Gradients are summed over replicas, then clipped by their global norm, then
    applied by the optimizer. This is the same under all strategies.

    Args:
        model: `AdapterModel` with a head.
        strategy: `tf.distribute.Strategy`.
        variables: List of the variables to train.
        optimizer: `AdamWOfSums`. It may hold other variables, too.
        settings: `TrainConfig`.
        seed: Integer. Seed of the run.
        compiler: `Compiler` for the two costly parts of a step: the gradients
            of a replica, and their application.
        half_kernels: `HalfKernels` of the model.

    Raises:
        ConfigError: If `train.accumulation_steps` is so large that several
            micro-batches of a batch would have the same dropout seed.
    """

    def __init__(
        self,
        model: Any,
        strategy: tf.distribute.Strategy,
        variables: list[keras.Variable],
        optimizer: AdamWOfSums,
        settings: TrainConfig,
        seed: int,
        compiler: Compiler,
        half_kernels: HalfKernels,
    ) -> None:
        half_kernels.refresh()
        self._half_kernels = half_kernels
        self.model = model
        self.strategy = strategy
        self.variables = variables
        self.optimizer = optimizer
        self.clip_norm = settings.clip_norm
        self.parts = settings.accumulation_steps
        self.steps_per_loop = settings.steps_per_loop
        self.seed = seed
        self.compiler = compiler
        self._programs: dict[str, Callable[..., Any]] = {}
        # Whether a step uses each of the variables, by the blocks that it
        # leaves out.
        self._is_used: dict[tuple[int, ...], list[bool]] = {}
        # Writing the graphs of the blocks would take most of the first step.
        # XLA compiles all blocks anyway.
        self._block_graphs = None
        if not compiler.is_on:
            self._block_graphs = SharedGraphs(
                graphs.traced_by_value,
                [*variables, *model.reparameterization.computed()],
            )
        # Traced once per kind of batch.
        self.run = graphs.traced(self._loop_on_replicas)
        _check_places(self.parts, strategy)

    def _loop_on_replicas(
        self,
        iterator: tf.data.Iterator | tf.distribute.DistributedIterator,
        steps: tf.Tensor,
        left_out: int = 0,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Trains on `steps` batches in one device call.

        Args:
            iterator: Distributed iterator over features of batches.
            steps: Integer tensor.
            left_out: Number of first blocks without adapters. Defaults to 0.
                Each number has a trace of its own, so that the backward pass
                can stop at the first block that trains.

        Returns:
            Losses `(steps,)` and gradient norms `(steps, variables)`.
        """
        if left_out:
            with self.model.without(range(left_out)):
                return self._train_on(iterator, steps)
        return self._train_on(iterator, steps)

    def _train_on(
        self,
        iterator: tf.data.Iterator | tf.distribute.DistributedIterator,
        steps: tf.Tensor,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        if self.steps_per_loop == 1:
            loss, norms = self.on_replicas(iterator.get_next())
            return loss[tf.newaxis], norms[tf.newaxis]

        def train(
            step: tf.Tensor, losses: tf.TensorArray, norms: tf.TensorArray
        ) -> tuple[tf.Tensor, tf.TensorArray, tf.TensorArray]:
            loss, norm = self.on_replicas(iterator.get_next())
            return step + 1, losses.write(step, loss), norms.write(step, norm)

        _, losses, norms = tf.while_loop(
            lambda step, *_: step < steps,
            train,
            [0, *(tf.TensorArray("float32", steps) for _ in range(2))],
            parallel_iterations=1,
        )
        return losses.stack(), norms.stack()

    def on_replicas(
        self, features: dict[str, Any]
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Trains on one batch; returns the loss and the gradient norms.

        Args:
            features: Features of a batch from a distributed iterator.
        """
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

    def _replica_step(
        self, features: dict[str, tf.Tensor]
    ) -> tuple[tf.Tensor, tf.Tensor]:
        loss, gradients, norms = self._replica_gradients(features)
        self._apply(gradients, norms)
        return loss, norms

    def _replica_gradients(
        self, features: dict[str, tf.Tensor]
    ) -> tuple[tf.Tensor, list[tf.Tensor], tf.Tensor]:
        """Returns a replica's loss, the gradients, and the gradients' norms.

        The gradients, but not the loss, are summed over all replicas.
        """
        replica = tf.distribute.get_replica_context()
        # Sums over replicas cannot be part of a program that XLA compiles, so
        # there is one program before the sum and one after it. All replicas
        # share a program, so the replica's number is one of its arguments.
        loss, gradients = self._program(
            f"gradients {self._left_out}", self._sum_of_parts
        )(features, replica.replica_id_in_sync_group)
        if self.strategy.num_replicas_in_sync > 1:
            gradients = replica.all_reduce(
                tf.distribute.ReduceOp.SUM, gradients
            )
        gradients, norms = self._program("norms", self._measured)(gradients)
        return loss, gradients, norms

    def _sum_of_parts(
        self, features: dict[str, tf.Tensor], replica: tf.Tensor
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """Returns a replica's loss and gradients, summed over micro-batches."""
        return accumulation.accumulate(
            lambda part, number: self._gradients(part, number, replica),
            features,
            self.parts,
            [variable.shape for variable in self.variables],
        )

    def _measured(
        self, gradients: list[tf.Tensor]
    ) -> tuple[list[tf.Tensor], tf.Tensor]:
        """Returns the gradients of the unscaled loss, and their norms."""
        if self.optimizer.loss_scale is not None:
            gradients = self.optimizer.loss_scale.unscaled(gradients)
        # The L2 loss is half of the sum of squares.
        halves = tf.stack([tf.nn.l2_loss(one) for one in gradients])
        return gradients, tf.sqrt(2 * halves)

    def _apply(self, gradients: list[tf.Tensor], norms: tf.Tensor) -> None:
        update = functools.partial(self._update, self._left_out)
        if self.strategy.num_replicas_in_sync == 1:
            update = self._program(f"update {self._left_out}", update)
        # With several replicas, Keras synchronizes them in the update, which
        # XLA cannot compile.
        update(gradients, norms)

    @property
    def _left_out(self) -> tuple[int, ...]:
        """Indices of the blocks whose adapters the current trace leaves out."""
        return tuple(sorted(self.model.left_out))

    def _program(
        self, name: str, function: Callable[..., Any]
    ) -> Callable[..., Any]:
        """Returns the compiled function with the given name.

        All calls with the same name share it, so that it is compiled once for
        each shape.
        """
        if name not in self._programs:
            self._programs[name] = self.compiler.compiled(name, function)
        return self._programs[name]

    def _update(
        self,
        left_out: tuple[int, ...],
        gradients: list[tf.Tensor],
        norms: tf.Tensor,
    ) -> None:
        if self.clip_norm is not None:
            gradients = _clipped(gradients, norms, self.clip_norm)
        self.optimizer.apply_used(
            gradients, self.variables, self._is_used[left_out]
        )

    def _gradients(
        self,
        features: dict[str, tf.Tensor],
        number: int | tf.Tensor,
        replica: tf.Tensor,
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """Returns loss and gradients of micro-batch `number` of a replica."""
        values = [variable.value for variable in self.variables]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(values)
            loss = scaled = self._loss(features, number, replica)
            if self.optimizer.loss_scale is not None:
                scaled = self.optimizer.loss_scale.scaled(loss)
        gradients = tape.gradient(scaled, values)
        self._is_used[self._left_out] = [one is not None for one in gradients]
        if not self.model.left_out:
            return loss, [tf.convert_to_tensor(one) for one in gradients]
        return loss, [
            tf.zeros_like(value) if one is None else tf.convert_to_tensor(one)
            for one, value in zip(gradients, values, strict=True)
        ]

    def dropout_seed(
        self, replica: tf.Tensor, number: int | tf.Tensor = 0
    ) -> tf.Tensor:
        """Returns the dropout seed of a replica's micro-batch.

        Args:
            replica: Integer tensor. Number of the replica, from 0.
            number: Number of the micro-batch, from 0 (default).
        """
        steps: Any = self.optimizer.iterations
        step = tf.cast(steps.value, tf.int64)
        place = tf.cast(replica, tf.int64)
        place *= self.parts
        place += tf.cast(number, tf.int64)
        return stateless_seeds.pass_seed(self.seed, place, step)

    def _loss(
        self,
        features: dict[str, tf.Tensor],
        number: int | tf.Tensor,
        replica: tf.Tensor,
    ) -> tf.Tensor:
        """Returns the loss of micro-batch `number` of a replica.

        Summed over parts and replicas, it is the mean loss plus the penalty
        of the method and the regularizers of weights.
        """
        inputs = without(features, ("indices", "targets", "weights"))
        seed = self.dropout_seed(replica, number)
        with (
            self._half_kernels.scope(),
            shared_graphs.sharing(self._block_graphs),
        ):
            outputs = self.model(inputs, training=True, seed=seed)
        losses = self.model.head.loss(features["targets"], outputs)
        parts = self.parts
        parts *= self.strategy.num_replicas_in_sync
        penalty = self.model.regularization() / parts
        return tf.reduce_sum(losses * features["weights"]) + penalty


def _check_places(parts: int, strategy: tf.distribute.Strategy) -> None:
    """Raises a `ConfigError` if there are more micro-batches than seeds.

    `parts` is the number of micro-batches of each replica. Each needs its own
    dropout seed.
    """
    replicas = strategy.num_replicas_in_sync
    most = stateless_seeds.MAX_PLACES // replicas
    if parts > most:
        raise ConfigError(
            f"`train.accumulation_steps` may be at most {most:,} on "
            f"{replicas} device(s), so that each part of a batch draws its "
            f"own dropout. Received: {parts}"
        )


def _clipped(
    gradients: list[tf.Tensor], norms: tf.Tensor, limit: float
) -> list[tf.Tensor]:
    """Scales gradients so that their global norm is at most `limit`.

    Writes fewer operations than `tf.clip_by_global_norm`.

    Args:
        gradients: List of tensors.
        norms: The norm of each gradient.
        limit: Largest global norm.
    """
    norm = tf.norm(norms)
    # NaN if the norm is not finite.
    scale = limit * tf.minimum(1 / norm, 1 / limit) + (norm - norm)
    return [gradient * scale for gradient in gradients]


def without(features: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Returns a copy of a dict without the keys in `names`."""
    return {key: v for key, v in features.items() if key not in names}
