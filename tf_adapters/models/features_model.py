"""Keras's `fit`, `predict` and others, with their arguments checked first.

TensorFlow builds a graph at the first call. If that call fails halfway, all
later calls fail with an unrelated error about variables. Arguments are
therefore checked, and variables created, before the graph is built.
"""

from collections.abc import Iterator
import contextlib
import os
from typing import Any

import keras
from keras import ops

from tf_adapters.common.errors import UserError
from tf_adapters.models import data_checks
from tf_adapters.models.replicas import is_on_one_device


class FeaturesModel(keras.Model):
    """A Keras model that takes token features: a dict of integer tensors."""

    # How often the graphs were dropped. Graphs elsewhere that include this
    # model are outdated if the number has changed.
    num_forgotten = 0
    # For which of training (`True`) and evaluation (`False`) `_prepare` must
    # run again, as graphs were dropped.
    _unprepared: frozenset[bool] = frozenset()
    # The `Head` that describes the output layer, and the layer itself.
    head = None
    head_layer = None

    def check_features(self, inputs: Any) -> None:
        """Raises a `UserError` unless a call of the model accepts `inputs`."""
        raise NotImplementedError

    def feature_shapes(self) -> dict[str, tuple[None, ...]]:
        """Returns a dict from the name of an input to its shape."""
        raise NotImplementedError

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        # Must run before Keras, whose error for a list of texts is misleading.
        self.check_features(inputs)
        return super().__call__(inputs, *args, **kwargs)

    def fit(
        self, x: Any = None, y: Any = None, *args: Any, **options: Any
    ) -> keras.callbacks.History:
        """Trains the model; see `keras.Model.fit`.

        Raises:
            UserError: If `x` has no token features or no rows, if labels are
                missing or do not fit the head, or if the learning rate is not
                a finite number.
        """
        y = data_checks.checked_labels(self, x, y)
        validation = options.get("validation_data")
        if isinstance(validation, tuple | list):
            x_val, y_val, *weights = validation
            y_val = data_checks.checked_labels(self, x_val, y_val)
            options["validation_data"] = (x_val, y_val, *weights)
        elif validation is not None:
            data_checks.checked_labels(self, validation, None)
        self._prepare(x, y, trains=True)
        with self._graphs_of_one_call():
            return super().fit(x, y, *args, **options)

    def evaluate(
        self, x: Any = None, y: Any = None, *args: Any, **options: Any
    ) -> Any:
        """Returns loss and metrics; see `keras.Model.evaluate`."""
        # Skipped within `fit`, which has checked its validation data.
        if not options.get("_use_cached_eval_dataset"):
            y = data_checks.checked_labels(self, x, y)
            self._prepare(x, y)
        with self._graphs_of_one_call():
            return super().evaluate(x, y, *args, **options)

    def predict(self, x: Any, *args: Any, **options: Any) -> Any:
        """Returns outputs as arrays; see `keras.Model.predict`."""
        data_checks.check_data(self, x)
        with self._graphs_of_one_call():
            return super().predict(x, *args, **options)

    def train_on_batch(
        self, x: Any, y: Any = None, *args: Any, **options: Any
    ) -> Any:
        """Trains one step; see `keras.Model.train_on_batch`."""
        y = data_checks.checked_labels(self, x, y)
        self._prepare(x, y, trains=True)
        with self._graphs_of_one_call():
            return super().train_on_batch(x, y, *args, **options)

    def test_on_batch(
        self, x: Any, y: Any = None, *args: Any, **options: Any
    ) -> Any:
        """Evaluates one batch; see `keras.Model.test_on_batch`."""
        y = data_checks.checked_labels(self, x, y)
        self._prepare(x, y)
        with self._graphs_of_one_call():
            return super().test_on_batch(x, y, *args, **options)

    def predict_on_batch(self, x: Any) -> Any:
        """Returns the outputs of one batch."""
        data_checks.check_data(self, x)
        with self._graphs_of_one_call():
            return super().predict_on_batch(x)

    def save(self, *args: Any, **options: Any) -> None:
        """Saves the model; see `keras.Model.save`."""
        # Raises an error before Keras opens the file, and so empties it.
        self.get_config()
        super().save(*args, **options)

    def export(
        self,
        filepath: str | os.PathLike[str],
        format: str = "tf_saved_model",
        verbose: bool | None = None,
        input_signature: list[Any] | None = None,
        **options: Any,
    ) -> None:
        """Exports the model; see `keras.Model.export`.

        The exported model takes token features. By default, batches may have
        any number of texts of any length. To export a model that takes
        strings, use `tf_adapters.export_model`.
        """
        if input_signature is None:
            shapes = self.feature_shapes()
            input_signature = [
                {
                    name: keras.InputSpec(shape=shape, dtype="int32", name=name)
                    for name, shape in shapes.items()
                }
            ]
        return super().export(
            filepath, format, verbose, input_signature, **options
        )

    def _prepare(self, x: Any, y: Any, trains: bool = False) -> None:
        """Creates the variables of optimizer and metrics, before Keras does.

        The variables must exist before TensorFlow builds a graph.
        """
        built = self.train_function if trains else self.test_function
        is_done = built is not None and trains not in self._unprepared
        if is_done or not self.compiled:
            return
        if trains:
            data_checks.check_learning_rate(self.optimizer)
        # With a strategy or another backend, Keras does this itself.
        if is_on_one_device(self):
            self._create_variables(x, y, trains)
        self._unprepared -= {trains}

    def _create_variables(self, x: Any, y: Any, trains: bool) -> None:
        if trains and self.optimizer is not None and not self.optimizer.built:
            self.optimizer.build(self.trainable_variables)
        targets = data_checks.targets_of(x, y)
        # A plug-in's layer may not define `output_shape`.
        shape = getattr(self.head_layer, "output_shape", None)
        if targets is not None and shape is not None:
            self._build_metrics(targets, shape)

    def _build_metrics(
        self, targets: Any, output_shape: tuple[int | None, ...]
    ) -> None:
        shapes = targets.shape[1:], output_shape[1:]
        # `None`: the length depends on the tokens or choices of a batch.
        if any(None in shape for shape in shapes):
            return
        labels, outputs = (ops.zeros((1, *shape)) for shape in shapes)
        labels = ops.cast(
            labels, keras.backend.standardize_dtype(targets.dtype)
        )
        self.compute_metrics(None, labels, outputs)
        self.reset_metrics()

    @contextlib.contextmanager
    def _graphs_of_one_call(self) -> Iterator[None]:
        """Context manager that drops all graphs if its `with` block fails.

        The graphs may then be incomplete. If bad data caused the error, a
        readable `UserError` replaces it.
        """
        try:
            yield
        except Exception as error:
            self._forget_graphs()
            sentence = data_checks.sentence_of(error, self.head)
            if sentence is None:
                raise
            raise UserError(sentence) from None

    def _forget_graphs(self) -> None:
        # Otherwise Keras would keep calling the old graphs. They are not set to
        # `None`, because a call may be under way, in another thread or around a
        # callback, and Keras looks them up for each batch.
        self.num_forgotten += 1
        self._unprepared = frozenset((True, False))
        if self.train_function is not None:
            super().make_train_function(force=True)
        if self.test_function is not None:
            super().make_test_function(force=True)
        if self.predict_function is not None:
            super().make_predict_function(force=True)
