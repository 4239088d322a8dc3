"""A Keras model that takes texts: encoder, method, head and packer in one."""

import contextlib
import dataclasses

import keras
import numpy as np

from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.config import presets
from tf_adapters.encoders.keras_hub_families import as_encoder
from tf_adapters.encoders.load import load_encoder
from tf_adapters.encoders.loaded_weights import User
from tf_adapters.heads.windows import check_pools_windows
from tf_adapters.models import saving
from tf_adapters.models.adapter_model import AdapterModel
from tf_adapters.models.variable_groups import count_weights
from tf_adapters.models.variable_groups import trained_table
from tf_adapters.text import defaults
from tf_adapters.text import losses
from tf_adapters.text import packers
from tf_adapters.text import rows as text_rows
from tf_adapters.text import training
from tf_adapters.text.batches import TextBatches
from tf_adapters.text.vectors import TextVectors
from tf_adapters.training.mean_loss import mean_loss

MAX_LENGTH = 128


class TextModel(keras.Model):
    """Texts in, answers out: an encoder with an adapter, a head and a packer.

    It is compiled already: the head's loss, and AdamW with a learning rate for
    short runs. `fit`, `evaluate` and `predict` take lists of texts, tables with
    columns, or, with `preprocessor=None`, token features.

    Args:
        encoder: `Encoder` from `load_encoder`, or a backbone of KerasHub.
        tokenizer: Its tokenizer. `None` needs `preprocessor=None`.
        method: A method or the name of one: `"pfeiffer"` (default),
            `"houlsby"`, `"lora"` ...; names are those of `--list=methods`.
        labels: Class names in the order of their ids; short for
            `head=heads.Classification(labels)`.
        head: A head, or the name of one without settings, `"regression"`.
        max_length: Longest input in tokens, special tokens included. Defaults
            to 128, or to what the encoder can take if that is less.
        learning_rate: Number; `"paper"` for that of the method's preset; `None`
            (default) for one that suits some hundred to thousand texts.
        preprocessor: `"auto"` (default) packs texts; `None` if `fit` and
            `predict` get token features.
        seed: Integer, 0 by default: initial weights, order and dropout.
        adapter_name: Name of the first adapter, see `add_adapter`.
        use_encoder_dropout: See `AdapterModel`.
        windows: Most windows that a text of more than `max_length` tokens is
            read in; 1 cuts it. `None` (default): the head's. See `VectorHead`;
            `head=heads.Classification(labels, windows=4, pooling="max")` has
            the other settings.

    Attributes:
        adapter_model: The active adapter's `AdapterModel`, the Keras model that
            takes token features.

    Examples:
        >>> model = tf_adapters.TextModel(
        ...     encoder, tokenizer, labels=("negative", "positive"), seed=1
        ... )
        >>> texts, labels = ["a fine film", "a dull one"], ["positive", 0]
        >>> history = model.fit(texts, labels, epochs=1, verbose=0)
        >>> model.predict(texts, verbose=0).shape
        (2, 2)
        >>> sorted(model.answer(["a fine film"])[0])
        ['label', 'probabilities']
    """

    def __init__(
        self,
        encoder,
        tokenizer=None,
        method="pfeiffer",
        labels=None,
        head=None,
        max_length=None,
        learning_rate=None,
        preprocessor="auto",
        seed=0,
        adapter_name="default",
        use_encoder_dropout=True,
        windows=None,
    ):
        keras.utils.set_random_seed(seed)
        model = AdapterModel(
            as_encoder(encoder),
            _as_method(method),
            _with_windows(_as_head(head, labels), windows),
            use_encoder_dropout=use_encoder_dropout,
            seed=seed,
            name=adapter_name,
        )
        self._set_up(
            model, tokenizer, max_length, learning_rate, preprocessor, seed
        )

    @classmethod
    def of_adapter(
        cls,
        adapter_model,
        tokenizer=None,
        max_length=None,
        learning_rate=None,
        preprocessor="auto",
        seed=0,
    ):
        """Returns the text model of an `AdapterModel`.

        Args:
            adapter_model: What `adapt`, `fuse`, `compose` or `load_adapter`
                returned.
            tokenizer: See `TextModel`.
            max_length: See `TextModel`.
            learning_rate: See `TextModel`.
            preprocessor: See `TextModel`.
            seed: See `TextModel`.
        """
        model = cls.__new__(cls)
        model._set_up(
            adapter_model,
            tokenizer,
            max_length,
            learning_rate,
            preprocessor,
            seed,
        )
        return model

    def _set_up(
        self, model, tokenizer, max_length, learning_rate, preprocessor, seed
    ):
        super().__init__(autocast=False, dtype="float32")
        self.encoder_info = model.encoder_info
        self.seed = seed
        self.learning_rate = learning_rate
        self.preprocessor = packers.make_packer(
            tokenizer, model, preprocessor, max_length or MAX_LENGTH
        )
        # Inside of a function: Keras would count every adapter's weights.
        adapters = {model.name: model}
        self._adapters = lambda: adapters
        self._nobody = User("encoder", trains_encoder=False)
        self.active = model.name
        self.text_fields = None
        self.run_folder = None
        self.compile()
        self.built = True

    @classmethod
    def from_preset(cls, preset, dtype=None, **options):
        """Returns a text model of a pretrained encoder.

        Args:
            preset: Name, folder or address, as `load_encoder` takes them:
                `"minilm"`, `"bert_base_en_uncased"`, `"hf://owner/model"`; or
                an `Encoder`, with `tokenizer=` next to it.
            dtype: See `load_encoder`.
            **options: See `TextModel`: `method`, `labels`, `head` ...

        Raises:
            UserError: If there is no such encoder, method or head.

        Examples:
            >>> model = tf_adapters.TextModel.from_preset(
            ...     "minilm", method="lora", labels=("ham", "spam")
            ... )
        """
        if isinstance(preset, str):
            encoder, tokenizer = load_encoder(preset, dtype)
            return cls(encoder, tokenizer, **options)
        return cls(preset, **options)

    @property
    def adapter_model(self) -> AdapterModel:
        """The `AdapterModel` of the active adapter."""
        return self._adapters()[self.active]

    @property
    def head(self):
        """The head of the active adapter."""
        return self.adapter_model.head

    @property
    def method(self):
        """The method of the active adapter."""
        return self.adapter_model.method

    def __repr__(self):
        weights = count_weights(self.adapter_model.trained_variables().values())
        return (
            f"<TextModel {self.active!r}: encoder {self.encoder_info.name!r}, "
            f"method {methods.name_of(self.method)!r}, head "
            f"{heads.name_of(self.head)!r}, {weights:,} trained weights>"
        )

    def call(self, inputs, training=None):
        return self.adapter_model(inputs, training=training)

    # Keras asks these of a model; they are the active adapter's.
    @property
    def variables(self):
        return self.adapter_model.variables

    @property
    def trainable_variables(self):
        return self.adapter_model.trainable_variables

    @property
    def non_trainable_variables(self):
        return self.adapter_model.non_trainable_variables

    @property
    def weights(self):
        return self.adapter_model.weights

    @property
    def trainable_weights(self):
        return self.adapter_model.trainable_weights

    @property
    def non_trainable_weights(self):
        return self.adapter_model.non_trainable_weights

    def compile(self, optimizer=None, loss=None, metrics=None, **options):
        """Compiles the active adapter's model, as Keras does.

        Args:
            optimizer: Default: AdamW with the model's learning rate, and
                gradients clipped to a global norm of 1.
            loss: Default: the head's.
            metrics: Default: accuracy where there is one class a text.
            **options: See `keras.Model.compile`.
        """
        model = self.adapter_model
        if optimizer is None:
            name = methods.name_of(model.method)
            rate = defaults.learning_rate_for(name, self.learning_rate)
            optimizer = keras.optimizers.AdamW(rate, global_clipnorm=1.0)
        if metrics is None and loss is None:
            metrics = losses.training_metrics(model.head)
        loss = losses.HeadLoss(model.head) if loss is None else loss
        model.compile(optimizer, loss=loss, metrics=metrics, **options)

    @property
    def optimizer(self):
        """The optimizer of the active adapter."""
        return self.adapter_model.optimizer

    @optimizer.setter
    def optimizer(self, value):
        if value is not None:
            self.adapter_model.optimizer = value

    def fit(
        self,
        x=None,
        y=None,
        batch_size=32,
        epochs=1,
        verbose="auto",
        callbacks=None,
        validation_split=0.0,
        validation_data=None,
        shuffle=True,
        class_weight=None,
        sample_weight=None,
        initial_epoch=0,
        text=None,
        label=None,
        **options,
    ):
        """Trains the active adapter, as Keras's `fit` does.

        Args:
            x: Texts: a list, an array, a `pandas.Series`; pairs; a table
                (`pandas.DataFrame`, `datasets.Dataset`, list of dicts, dict of
                columns); a batched or unbatched `tf.data.Dataset` of texts and
                labels; or token features.
            y: A label for each text: a class's name or id, a number, a list of
                classes, a tag for each word, answers. `None` where a column of
                `x` holds them.
            batch_size: Texts in a step. Defaults to 32.
            epochs: How often all texts are seen. Defaults to 1.
            verbose: See `keras.Model.fit`.
            callbacks: Keras's callbacks; their `model` is `adapter_model`.
            validation_split: Share of the texts, the last ones, that do not
                train but are evaluated after each epoch.
            validation_data: `(texts, labels)`, or a table with the same
                columns. The head's metrics are logged as `val_<name>`.
            shuffle: Whether each epoch has an order of its own.
            class_weight: Dict from a class's name or id to the factor of its
                loss.
            sample_weight: A number for each text.
            initial_epoch: See `keras.Model.fit`.
            text: Column of a table that holds the texts; two names for pairs.
            label: Column of a table that holds the labels. Default: `label`.
            **options: See `keras.Model.fit`.

        Returns:
            Keras's `History`.

        Raises:
            UserError: If texts or labels are malformed; names the first ten.
        """
        given = {
            "batch_size": batch_size,
            "epochs": epochs,
            "verbose": verbose,
            "shuffle": shuffle,
            "initial_epoch": initial_epoch,
            **options,
        }
        model = self.adapter_model
        if self._takes_features(x):
            return model.fit(
                x,
                y,
                callbacks=callbacks,
                validation_split=validation_split,
                validation_data=validation_data,
                class_weight=class_weight,
                sample_weight=sample_weight,
                **given,
            )
        columns = {"text": text, "label": label}
        train, held_out = training.split_rows(
            self._rows(x, y, **columns),
            self._validation_rows(validation_data, **columns),
            validation_split,
        )
        weights = training.row_weights(
            model.head, train, class_weight, sample_weight
        )
        batches = TextBatches(
            self._encode(train),
            batch_size,
            self.preprocessor.special_tokens.pad,
            seed=self.seed if shuffle else None,
            weights=weights,
        )
        callbacks = training.with_validation(callbacks, self, held_out)
        given.pop("batch_size")
        return model.fit(
            batches, callbacks=callbacks, **{**given, "shuffle": False}
        )

    def evaluate(
        self,
        x=None,
        y=None,
        batch_size=32,
        verbose="auto",
        text=None,
        label=None,
        **options,
    ):
        """Returns the loss and the head's metrics of a whole set, by name.

        Args:
            x: See `fit`.
            y: See `fit`.
            batch_size: Texts at a time.
            verbose: See `keras.Model.evaluate`.
            text: See `fit`.
            label: See `fit`.
            **options: With token features see `keras.Model.evaluate`.
        """
        if self._takes_features(x):
            return self.adapter_model.evaluate(
                x, y, batch_size=batch_size, verbose=verbose, **options
            )
        rows = self._rows(x, y, text=text, label=label)
        return self.evaluate_rows(rows, batch_size, verbose)

    def evaluate_rows(self, rows, batch_size=32, verbose=0):
        """Returns the loss and the head's metrics of rows with labels."""
        encoded = self._encode(rows)
        outputs = self._outputs(encoded, batch_size, verbose)
        names = training.metrics_of(self.head)
        values = self.head.evaluate(
            names, outputs, encoded.targets, encoded.source
        )
        return {"loss": mean_loss(self.head, outputs, encoded), **values}

    def predict(self, x, batch_size=32, verbose="auto", text=None, **options):
        """Returns the head's outputs, as Keras's `predict` does.

        Args:
            x: Texts, see `fit`, or token features.
            batch_size: Texts at a time.
            verbose: See `keras.Model.predict`.
            text: See `fit`.
            **options: With token features see `keras.Model.predict`.

        Returns:
            Array with a row for each text, logits of classes for example; for
            tags and spans, whose outputs are as long as texts, a list of
            arrays.
        """
        if self._takes_features(x):
            return self.adapter_model.predict(
                x, batch_size=batch_size, verbose=verbose, **options
            )
        rows = self._rows(x, None, text=text, labelled=False)
        outputs = self._outputs(
            self._encode(rows, labelled=False), batch_size, verbose
        )
        return (
            outputs if training.is_of_tokens(self.head) else np.stack(outputs)
        )

    def answer(self, x, batch_size=32, verbose=0, text=None):
        """Returns a dict for each text, as `tf-adapters predict` writes it.

        Args:
            x: Texts, see `fit`.
            batch_size: Texts at a time.
            verbose: See `keras.Model.predict`.
            text: See `fit`.

        Returns:
            List of dicts of plain values: of classes `label` and
            `probabilities`, of numbers `score`, of words `tags`, of spans
            `answer`.
        """
        rows = self._rows(x, None, text=text, labelled=False)
        encoded = self._encode(rows, labelled=False)
        outputs = self._outputs(encoded, batch_size, verbose)
        return self.head.decode(outputs, encoded.source)

    def encode(self, x, batch_size=32, verbose=0, text=None, pooling="mean"):
        """Returns a vector for each text: what the encoder with adapter gives.

        Args:
            x: Texts, see `fit`.
            batch_size: Texts at a time.
            verbose: See `keras.Model.predict`.
            text: See `fit`.
            pooling: `"mean"` (default) over the tokens, or `"first_token"`.

        Returns:
            Float32 array `(texts, width)`.
        """
        rows = self._rows(x, None, text=text, labelled=False)
        encoded = self._encode(rows, labelled=False)
        vectors = TextVectors(self.adapter_model, pooling)
        outputs = self._outputs(encoded, batch_size, verbose, vectors)
        return np.stack(outputs)

    def _takes_features(self, x):
        is_features = isinstance(x, dict) and "token_ids" in x
        if self.preprocessor is None and isinstance(x, list | str):
            raise UserError(
                "This model has no preprocessor, so it takes token features: "
                "`tf_adapters.TextPacker(tokenizer, max_length)(texts)`. "
                f"Received: {shown(x)}"
            )
        return is_features or self.preprocessor is None

    def _rows(self, x, y, text=None, label=None, labelled=True):
        rows = text_rows.rows_of(x, y, self.head, text, label, labelled)
        if self.text_fields is None or labelled:
            self.text_fields = rows.fields
        return rows

    def _validation_rows(self, data, text, label):
        if data is None:
            return None
        pair = isinstance(data, tuple) and len(data) in (2, 3)
        x, y = data[:2] if pair else (data, None)
        return self._rows(x, y, text=text, label=label)

    def _encode(self, rows, labelled=True):
        return self.head.encode(
            rows.rows, rows.fields, self.preprocessor, labelled
        )

    def _outputs(self, encoded, batch_size, verbose, model=None):
        """Returns a list with the outputs of each example, in order."""
        model = self.adapter_model if model is None else model
        pad = self.preprocessor.special_tokens.pad
        return training.outputs_of(
            model, encoded, batch_size, pad, verbose, self.head
        )

    def add_adapter(self, name, adapter, labels=None, head=None):
        """Adds another adapter on the same encoder; it becomes the active one.

        Args:
            name: Its name.
            adapter: Folder of a trained adapter, `hf://owner/name`, or a method
                or the name of one, to be trained.
            labels: See `TextModel`; of a method only.
            head: See `TextModel`; of a method only.

        Raises:
            UserError: If the name is taken, or the adapter of another encoder.
        """
        if name in self._adapters():
            raise UserError(
                f"There is an adapter `{name}` already. The adapters are "
                f"{', '.join(self._adapters())}."
            )
        before = self.active
        self._lend(self._nobody)
        try:
            model = self._make_adapter(name, adapter, labels, head)
        except Exception:
            self._lend(self._adapters()[before].encoder_user)
            raise
        self._adapters()[name] = model
        self.set_active(name)
        self.compile()

    def _make_adapter(self, name, adapter, labels, head):
        if isinstance(adapter, str) and adapter in presets.preset_names():
            adapter = _as_method(adapter)
        if not isinstance(adapter, methods.Method):
            return saving.load_adapter(adapter, self.encoder_info, name=name)
        return AdapterModel(
            self.encoder_info,
            adapter,
            _as_head(head, labels),
            seed=self.seed,
            name=name,
        )

    def set_active(self, name):
        """Makes another adapter the one that trains and answers.

        What an adapter trained of the encoder (norms, biases) is put into the
        encoder, and that of the adapter before is kept for it.
        """
        if name not in self._adapters():
            raise UserError(
                f"There is no adapter `{name}`. The adapters are "
                f"{', '.join(self._adapters())}."
            )
        self._lend(self._adapters()[name].encoder_user)
        self.active = name

    def _lend(self, user):
        self.encoder_info.loaded.switch_to(user, self.encoder_info.name)

    @contextlib.contextmanager
    def disabled(self):
        """Answers and encodes without the adapter for the time of a `with`.

        The encoder is as it was loaded; the head is the active adapter's.
        """
        active = self.adapter_model
        self._lend(self._nobody)
        plain = AdapterModel(
            self.encoder_info, methods.HeadOnly(), active.head, name="disabled"
        )
        for variable, trained in zip(
            plain.head_layer.weights, active.head_layer.weights, strict=True
        ):
            variable.assign(trained)
        self._adapters()["disabled"] = plain
        self.active = "disabled"
        try:
            yield self
        finally:
            del self._adapters()["disabled"]
            self.active = active.name
            self._lend(active.encoder_user)

    def save_adapter(self, folder, details=None, overwrite=False, **options):
        """Saves the active adapter, with its labels and how texts are packed.

        `tf_adapters.load(folder)` gives the text model back.

        Args:
            folder: Path.
            details: Dict of plain values for the card.
            overwrite: See `save_adapter`.
            **options: See `save_adapter`.
        """
        packing = {}
        if self.preprocessor is not None:
            packing["max_length"] = self.preprocessor.max_length
        if self.text_fields:
            packing["text_fields"] = list(self.text_fields)
        return saving.save_adapter(
            self.adapter_model,
            folder,
            {**packing, **(details or {})},
            overwrite=overwrite,
            **options,
        )

    def summary(self, **options):
        """Prints Keras's summary, and the table of what trains."""
        self.adapter_model.summary(**options)
        print_fn = options.get("print_fn") or print
        print_fn(trained_table(self.adapter_model))

    def save(self, *args, **options):
        """Raises a `UserError`: Keras's files hold no tokenizers of ours."""
        self.get_config()

    def get_config(self):
        raise UserError(
            "A text model is saved with `model.save_adapter(folder)`, and "
            "loaded with `tf_adapters.load(folder)`. "
            "`model.adapter_model.save(path)` writes the Keras model that "
            "takes token features."
        )


def _as_method(method):
    if not isinstance(method, str):
        return method
    return methods.from_config(presets.complete({"name": method}))


def _with_windows(head, windows):
    if windows is None:
        return head
    check_pools_windows(head, heads.name_of(head))
    return dataclasses.replace(head, windows=windows)


def _as_head(head, labels):
    if labels is not None and head is not None:
        raise UserError(
            "Pass `labels`, which is short for heads.Classification(labels), "
            "or `head`, not both."
        )
    if labels is not None:
        return heads.Classification(labels)
    if isinstance(head, str):
        return heads.from_config({"name": head})
    if head is None:
        raise UserError(
            "A text model needs the names of its classes, "
            '`labels=("negative", "positive")`, or a head, for example '
            '`head="regression"` or `tf_adapters.heads.Tagging(tags)`.'
        )
    return head
