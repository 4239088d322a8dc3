"""Runs a text model on a `tf.data.Dataset` of texts."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING
from typing import Any

from keras import ops
import numpy as np
import tensorflow as tf

from tf_adapters.common.errors import UserError
from tf_adapters.text import predicting
from tf_adapters.text import streams
from tf_adapters.text.stream_labels import in_sentences
from tf_adapters.training.finite import check_outputs

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Sequence

    import keras

    from tf_adapters import heads
    from tf_adapters.models.adapter_model import AdapterModel
    from tf_adapters.text.packer_layer import PackerLayer


class StreamRunner:
    """Trains, evaluates and predicts on a dataset, one batch at a time.

    Args:
        model: `AdapterModel`.
        preprocessor: `PackerLayer`.
        dataset: See `streams.open_dataset`.
        batch_size: See `streams.open_dataset`.
        text: See `streams.open_dataset`.
        label: See `streams.open_dataset`.
        known: See `streams.open_dataset`.

    Raises:
        UserError: If the dataset does not contain texts, or they cannot be
            packed in a graph.
    """

    def __init__(
        self,
        model: AdapterModel,
        preprocessor: PackerLayer,
        dataset: tf.data.Dataset,
        batch_size: int,
        text: str | Sequence[str] | None = None,
        label: str | None = None,
        known: Sequence[str] | None = None,
    ) -> None:
        self.model = model
        self._packer = streams.graph_packer_of(preprocessor)
        self._stream = streams.open_dataset(
            dataset, model.head, batch_size, text, label, known
        )

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the text fields."""
        return self._stream.fields

    def _features(self, **options: Any) -> tf.data.Dataset:
        return self._stream.features(self.model.head, self._packer, **options)

    def fit(
        self, class_weight: Mapping[Any, float] | None = None, **options: Any
    ) -> keras.callbacks.History:
        """Trains the model; see `TextModel.fit`."""
        if options.get("steps_per_epoch") is None:
            streams.check_ends(self._stream.dataset)
        features = self._features(labeled=True, class_weight=class_weight)
        with in_sentences(self.model.head):
            history = self.model.fit(features, **{**options, "shuffle": False})
        if history.epoch:
            _check_some(history.history.get("loss"))
        return history

    def check_labeled(self) -> None:
        """Raises a `UserError` if the dataset cannot be evaluated.

        It must end, and have labels that suit the head. Nothing is read.
        """
        streams.check_ends(self._stream.dataset)
        with in_sentences(self.model.head):
            self._features(labeled=True, across_batches=True)

    def evaluate(self) -> dict[str, float]:
        """Returns a dict of the loss and the head's metrics on the dataset."""
        streams.check_ends(self._stream.dataset)
        head, outputs, targets, total = self.model.head, [], [], 0.0
        features = self._features(labeled=True, across_batches=True)
        with in_sentences(head):
            for inputs, target, _ in features.as_numpy_iterator():
                output = np.asarray(self.model.predict_on_batch(inputs))
                total += _sum_of_losses(head, target, output)
                outputs.append(output)
                targets.append(target)
        _check_some(outputs)
        outputs, targets = map(np.concatenate, (outputs, targets))
        check_outputs(outputs)
        values = head.evaluate(predicting.metric_names(head), outputs, targets)
        return {"loss": total / len(outputs), **values}

    def outputs(
        self, verbose: Any = 0, model: keras.Model | None = None
    ) -> np.ndarray:
        """Returns an array with the outputs of `model` on the dataset.

        By default, `model` is the `AdapterModel`.
        """
        streams.check_ends(self._stream.dataset)
        model = self.model if model is None else model
        features = _not_empty(self._features(labeled=False))
        return model.predict(features, verbose=verbose)

    def answers(self, verbose: str | int = 0) -> list[dict[str, Any]]:
        """Returns the head's decoded predictions, a dict for each text."""
        outputs = self.outputs(verbose)
        check_outputs(outputs)
        return self.model.head.decode(outputs, None)


def _sum_of_losses(
    head: heads.Head, targets: np.ndarray, outputs: np.ndarray
) -> float:
    losses = head.loss(*map(ops.convert_to_tensor, (targets, outputs)))
    return float(ops.sum(losses))


def _check_some(batches: Sequence[Any] | None) -> None:
    if not batches:
        raise UserError("The dataset holds no texts. Give at least one.")


def _not_empty(features: tf.data.Dataset) -> tf.data.Dataset:
    """Returns a dataset with the same elements. Refuses an empty dataset.

    Keras fails with an empty dataset. The first element is not read twice,
    because a dataset of a Python iterator gives each of its elements once.
    """
    batches = iter(features)
    first = next(batches, None)
    _check_some([] if first is None else [first])
    found = tf.data.Dataset.from_generator(
        lambda: itertools.chain([first], batches),
        output_signature=features.element_spec,
    )
    known = features.cardinality()
    if known >= 0:
        found = found.apply(tf.data.experimental.assert_cardinality(known))
    return found
