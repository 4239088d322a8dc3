"""A Keras model that trains on texts in all supported input forms."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.text import arguments
from tf_adapters.text import columns
from tf_adapters.text import device_memory
from tf_adapters.text import rows as text_rows
from tf_adapters.text import training
from tf_adapters.text.explaining_model import ExplainingModel

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Iterator
    from collections.abc import Mapping
    from collections.abc import Sequence

    import keras


class FittingModel(ExplainingModel):
    """Implements `fit` on texts."""

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = 32,
        epochs: int = 1,
        verbose: str | int = "auto",
        callbacks: keras.callbacks.Callback
        | Sequence[keras.callbacks.Callback]
        | None = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool = True,
        class_weight: Mapping[Any, float] | None = None,
        sample_weight: Any = None,
        initial_epoch: int = 0,
        text: str | Sequence[str] | None = None,
        label: str | None = None,
        **options: Any,
    ) -> keras.callbacks.History:
        """Trains the active adapter, as Keras's `fit` does.

        If the head predicts classes or a number and does not split texts into
        windows, memory use is bounded for any number of texts. A list or table
        of more than 50,000 rows is tokenized one batch at a time, again in each
        epoch: two million short texts took 105 MB in addition to the texts. A
        `tf.data.Dataset` is never in memory as a whole: two million texts took
        as much memory as 100,000.

        Args:
            x: Texts: a list, an array, a `pandas.Series`; pairs; a table
                (`pandas.DataFrame`, `datasets.Dataset`, list of dicts, dict of
                columns); or token features. Heads of classes, numbers and
                vectors also take a `tf.data.Dataset`, batched or not, of
                `(texts, labels)`, `(texts, labels, weights)` or dicts of
                columns. In it, a pair is a tuple of two texts, and a text with
                several labels has a 0 or 1 for each class. For
                `SentenceRanking`, an element is the tuple of a row's texts.
            y: A label for each text: a class's name or id, a number, a list of
                classes, a tag for each word, or answers. `None` if a column of
                `x` contains them.
            batch_size: Number of texts per step, and per batch of held-out
                texts. Defaults to 32. Has no effect on a batched
                `tf.data.Dataset`.
            epochs: Number of passes over the texts. Defaults to 1.
            verbose: See `keras.Model.fit`.
            callbacks: Keras callbacks; their `model` is `adapter_model`.
            validation_split: Fraction of the texts, taken from the end, that
                are held out and evaluated after each epoch. Defaults to 0.
                Weights of held-out texts have no effect.
            validation_data: `(texts, labels)`, or a table with the same
                columns, or a `tf.data.Dataset`. The head's metrics are logged
                as `val_<name>` after each epoch. Weights are not supported.
            shuffle: Whether to shuffle the texts in each epoch. Defaults to
                `True`. The order depends only on the model's seed and the
                number of the epoch, see `initial_epoch`. A `tf.data.Dataset` is
                never shuffled.
            class_weight: Dict from a class's name or id to a factor for the
                loss of its texts.
            sample_weight: A factor for the loss of each text.
            initial_epoch: Number of the first epoch. Defaults to 0. If you call
                `fit` again to continue, pass the number of epochs so far, so
                that the texts are shuffled in another way.
            text: Name of the table column with the texts, or a list of names:
                two for pairs, three for triples. Default: the columns that the
                model was trained on, if the table has them, and otherwise
                `text`, or `text_a` and `text_b`.
            label: Name of the table column with the labels. Default: `label`.
            **options: See `keras.Model.fit`. Texts do not support
                `validation_batch_size`, `validation_freq` and
                `validation_steps`.

        Returns:
            Keras's `History`.

        Raises:
            UserError: If texts or labels are malformed. The message names the
                first ten, or only the first one of a `tf.data.Dataset`. Also if
                an option is not supported, or the memory of the device does not
                suffice.
        """
        given = {
            "epochs": epochs,
            "verbose": verbose,
            "initial_epoch": initial_epoch,
            **options,
        }
        weighting = {
            "class_weight": class_weight,
            "sample_weight": sample_weight,
        }
        self.adapters.check_enabled("Train")
        with (
            device_memory.explained(self.adapter_model, batch_size),
            self._fields_kept_on_failure(),
        ):
            if self._takes_features(x):
                return self.adapter_model.fit(
                    x,
                    y,
                    batch_size=batch_size,
                    shuffle=shuffle,
                    callbacks=callbacks,
                    validation_split=validation_split,
                    validation_data=validation_data,
                    **weighting,
                    **given,
                )
            arguments.check_fit_options(options)
            arguments.check_epoch(initial_epoch)
            named = {"text": text, "label": label}
            if columns.is_dataset(x):
                training.check_stream_arguments(
                    y, validation_split, sample_weight
                )
                stream = self._stream(x, batch_size, **named)
                check = self._validation(validation_data, batch_size, named)
                self.text_fields = stream.fields
                return stream.fit(
                    class_weight,
                    callbacks=training.with_validation(callbacks, check),
                    **given,
                )
            rows = self._rows(x, y, **named)
            train, held_out = training.split_rows(
                rows, validation_data, validation_split
            )
            check = self._validation(held_out, batch_size, named)
            # The first weights are those of `train`.
            weights = training.row_weights(self.head, rows, **weighting)
            batches = training.batches_of(
                self.head,
                train,
                self.preprocessor.packer,
                arguments.batch_size_of(batch_size),
                self.seed if shuffle else None,
                weights,
                initial_epoch,
            )
            self.text_fields = train.fields
            training.start_at_mean(self.adapter_model, train, weights)
            return self.adapter_model.fit(
                batches,
                callbacks=training.with_validation(callbacks, check),
                shuffle=False,
                **given,
            )

    @contextlib.contextmanager
    def _fields_kept_on_failure(self) -> Iterator[None]:
        """Restores the names of the texts if the `with` block fails.

        If the user stops the training, the adapter has learned from the texts.
        """
        before = self.text_fields
        try:
            yield
        except Exception:
            self.text_fields = before
            raise

    def _validation(
        self, data: Any, batch_size: int | None, named: dict[str, Any]
    ) -> Callable[[], dict[str, float]] | None:
        """Returns a function that evaluates the model on held-out texts.

        Args:
            data: See `validation_data` of `fit`. If `None`, `None` is returned.
            batch_size: See `fit`.
            named: Dict of the arguments `text` and `label` of `fit`.
        """
        if data is None:
            return None
        if columns.is_dataset(data):
            # The names are those of the columns of `x`.
            named = columns.names_of_dataset(data, **named)
            stream = self._stream(data, batch_size, **named)
            stream.check_labeled()
            return stream.evaluate
        if not isinstance(data, text_rows.TextRows):
            x, y = training.texts_and_labels(data)
            label = named["label"] if y is None else None
            data = self._rows(x, y, text=named["text"], label=label)
        return lambda: self.evaluate_rows(data, batch_size)
