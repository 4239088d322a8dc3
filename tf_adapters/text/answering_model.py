"""A Keras model that evaluates and predicts texts in all supported forms."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.text import arguments
from tf_adapters.text import columns
from tf_adapters.text import device_memory
from tf_adapters.text import rows as text_rows
from tf_adapters.text import training
from tf_adapters.text.predicting import Predictor
from tf_adapters.text.stand_in import StandInModel
from tf_adapters.text.vectors import of_single_texts
from tf_adapters.text.vectors import vectors_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import keras
    import numpy as np

    from tf_adapters.layers.token_pooling import TokenPooling
    from tf_adapters.text.packer_layer import PackerLayer
    from tf_adapters.text.stream_runner import StreamRunner


class AnsweringModel(StandInModel):
    """Implements `evaluate`, `predict`, `answer` and `encode` on texts.

    Attributes:
        preprocessor: `PackerLayer`, or `None` if the model takes token features
            instead of texts.
        seed: Integer that determines the order of the training texts.
    """

    preprocessor: PackerLayer | Any = None
    seed: int = 0

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = 32,
        verbose: str | int = "auto",
        text: str | Sequence[str] | None = None,
        label: str | None = None,
        **options: Any,
    ) -> dict[str, float] | Any:
        """Returns a dict of the loss and the head's metrics on the given data.

        On token features, returns what `keras.Model.evaluate` returns.

        Args:
            x: See `fit`. Weights in a `tf.data.Dataset` are ignored.
            y: See `fit`.
            batch_size: Number of texts per batch. Defaults to 32.
            verbose: See `keras.Model.evaluate`; for a `tf.data.Dataset` no
                progress bar is shown.
            text: See `fit`.
            label: See `fit`.
            **options: For token features only, see `keras.Model.evaluate`.

        Raises:
            UserError: If texts or labels are malformed, or texts do not support
                an option.
        """
        with device_memory.explained(self.adapter_model, batch_size):
            if self._takes_features(x):
                return self.adapter_model.evaluate(
                    x, y, batch_size=batch_size, verbose=verbose, **options
                )
            arguments.check_no_options("evaluate", options)
            if columns.is_dataset(x):
                training.check_stream_arguments(y, 0.0, None)
                return self._stream(x, batch_size, text, label).evaluate()
            rows = self._rows(x, y, text=text, label=label)
            return self.evaluate_rows(rows, batch_size, verbose)

    def evaluate_rows(
        self,
        rows: text_rows.TextRows,
        batch_size: int | None = 32,
        verbose: str | int = 0,
    ) -> dict[str, float]:
        """Returns a dict of the loss and the head's metrics on `TextRows`."""
        return self._predictor(batch_size, verbose).evaluate(rows)

    def predict(
        self,
        x: Any,
        batch_size: int | None = 32,
        verbose: str | int = "auto",
        text: str | Sequence[str] | None = None,
        **options: Any,
    ) -> np.ndarray | Any:
        """Returns the head's outputs, as Keras's `predict` does.

        Args:
            x: Texts, see `fit`, or token features. Labels in a
                `tf.data.Dataset` are ignored.
            batch_size: Number of texts per batch. Defaults to 32.
            verbose: See `keras.Model.predict`.
            text: See `fit`.
            **options: For token features only, see `keras.Model.predict`.

        Returns:
            Array with a row for each text, for example class logits. For tags
            and spans, which have one output per token, a list of arrays, one
            for each window of each text; use `answer` for one result per text.
        """
        with device_memory.explained(self.adapter_model, batch_size):
            if self._takes_features(x):
                return self.adapter_model.predict(
                    x, batch_size=batch_size, verbose=verbose, **options
                )
            arguments.check_no_options("predict", options)
            if columns.is_dataset(x):
                return self._stream(x, batch_size, text).outputs(verbose)
            rows = self._rows(x, None, text=text, labeled=False)
            return self._predictor(batch_size, verbose).outputs(rows)

    def answer(
        self,
        x: Any,
        batch_size: int | None = 32,
        verbose: str | int = 0,
        text: str | Sequence[str] | None = None,
    ) -> list[dict[str, Any]]:
        """Returns a dict for each text, in the format of `tf-adapters predict`.

        Args:
            x: Texts, see `predict`.
            batch_size: Number of texts per batch. Defaults to 32.
            verbose: See `keras.Model.predict`.
            text: See `fit`.

        Returns:
            List of dicts of plain values: `label` and `probabilities` for
            classes, `score` for numbers, `tags` for words, `answer` for spans.
        """
        with device_memory.explained(self.adapter_model, batch_size):
            if columns.is_dataset(x):
                return self._stream(x, batch_size, text).answers(verbose)
            rows = self._rows(x, None, text=text, labeled=False)
            return self._predictor(batch_size, verbose).answers(rows)

    def encode(
        self,
        x: Any,
        batch_size: int | None = 32,
        verbose: str | int = 0,
        text: str | Sequence[str] | None = None,
        pooling: TokenPooling | None = None,
    ) -> np.ndarray:
        """Computes a vector for each text with the encoder and the adapter.

        Heads that make vectors, such as `SentenceVector`, return their vectors.

        Args:
            x: Texts, see `predict`.
            batch_size: Number of texts per batch. Defaults to 32.
            verbose: See `keras.Model.predict`.
            text: See `fit`.
            pooling: How the token vectors of a text are combined if the head
                does not make vectors: `"mean"` (default) or `"first_token"`.

        Returns:
            Float32 array `(texts, width)`. For pairs, a head that makes vectors
            returns `(pairs, 2, width)`; all other heads read a pair together.

        Raises:
            UserError: If texts are malformed, or a head of words or answers
                reads a text as several inputs, or as none.
        """
        self.adapter_model.check_encoder()
        vectors = self._vectors_model(pooling)
        with device_memory.explained(self.adapter_model, batch_size):
            if columns.is_dataset(x):
                stream = self._stream(x, batch_size, text)
                return of_single_texts(stream.outputs(verbose, vectors))
            rows = self._rows(x, None, text=text, labeled=False, answered=False)
            predictor = self._predictor(batch_size, verbose, vectors)
            return of_single_texts(predictor.vectors(rows))

    def _vectors_model(self, pooling: TokenPooling | None) -> keras.Model:
        """Returns `vectors_of` the active adapter.

        It is kept, so that a second `encode` needs no new graph.
        """
        model = self.adapter_model
        key = (model, pooling, model.num_forgotten)
        # Another thread may replace the kept one.
        last_key, vectors = self._last_vectors()
        if last_key != key:
            vectors = vectors_of(model, pooling)
            # A function, because Keras would track a tuple of models.
            self._last_vectors = lambda: (key, vectors)
        return vectors

    def _last_vectors(self) -> tuple[Any, Any]:
        return None, None

    def _takes_features(self, x: Any) -> bool:
        if self.preprocessor is not None:
            return columns.holds_features(x)
        if isinstance(x, list | str):
            self._check_packs(x)
        return True

    def _check_packs(self, x: Any) -> None:
        if self.preprocessor is None:
            raise UserError(
                "This model has no preprocessor, so it takes token features: "
                "`tf_adapters.TextPacker(tokenizer, max_length)(texts)`, in "
                f"`fit`, `evaluate` and `predict`. Received: {shown(x)}"
            )

    def _rows(
        self,
        x: Any,
        y: Any,
        text: str | Sequence[str] | None = None,
        label: str | None = None,
        labeled: bool = True,
        answered: bool = True,
    ) -> text_rows.TextRows:
        self._check_packs(x)
        if answered:
            arguments.check_answers(self.head)
        rows = text_rows.rows_of(
            x, y, self.head, text, label, labeled, self.text_fields
        )
        if self.text_fields is None:
            self.text_fields = rows.fields
        return rows

    def _stream(
        self,
        x: Any,
        batch_size: int | None,
        text: str | Sequence[str] | None = None,
        label: str | None = None,
    ) -> StreamRunner:
        # Imported here, because models can train without TensorFlow.
        from tf_adapters.text.stream_runner import StreamRunner

        self._check_packs(x)
        size = arguments.batch_size_of(batch_size)
        runner = StreamRunner(
            *(self.adapter_model, self.preprocessor, x, size, text, label),
            known=self.text_fields,
        )
        if self.text_fields is None:
            self.text_fields = runner.fields
        return runner

    def _predictor(
        self,
        batch_size: int | None,
        verbose: str | int,
        model: keras.Model | None = None,
    ) -> Predictor:
        return Predictor(
            self.adapter_model if model is None else model,
            self.head,
            self.preprocessor.packer,
            arguments.batch_size_of(batch_size),
            verbose,
        )
