"""A Keras model that takes texts: encoder, method, head and packer in one."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

import keras

from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.encoders.encoder import as_encoder
from tf_adapters.encoders.load import load_encoder
from tf_adapters.models.adapter_model import AdapterModel
from tf_adapters.models.variable_groups import count_weights
from tf_adapters.text import defaults
from tf_adapters.text import losses
from tf_adapters.text import packer_layer
from tf_adapters.text import parts
from tf_adapters.text.adapter_set import AdapterSet
from tf_adapters.text.adapter_set import check_name
from tf_adapters.text.stored_fields import fields_of
from tf_adapters.text.stored_model import StoredModel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Mapping
    from collections.abc import Sequence
    import os
    from typing import Literal
    from typing import Self

    import keras_hub

    from tf_adapters.data.tokens.packer import Packer
    from tf_adapters.encoders.encoder import Encoder
    from tf_adapters.text.packer_layer import PackerLayer


@keras.saving.register_keras_serializable("tf_adapters")
class TextModel(StoredModel):
    """A model that takes texts: an encoder with adapter, head and packer.

    It is already compiled with the head's loss, and with AdamW at a learning
    rate for short runs. `fit`, `evaluate` and `predict` take lists of texts,
    tables with columns, a `tf.data.Dataset`, or token features.

    Args:
        encoder: `Encoder` from `load_encoder`, or a KerasHub backbone.
        tokenizer: The encoder's tokenizer. `None` (default) requires
            `preprocessor=None`.
        method: A method or its name: `"pfeiffer"` (default), `"houlsby"`,
            `"lora"` ...; `--list=methods` lists all names.
        labels: Class names in the order of their ids; short for
            `head=heads.Classification(labels)`.
        head: A head, or the name of a head without settings: `"regression"`.
        max_length: Maximum length in tokens, including special tokens. Defaults
            to 128, or to the encoder's limit if that is smaller.
        learning_rate: A number, `"paper"` for the rate of the method's preset,
            or `None` (default) for a rate that suits hundreds to thousands of
            texts.
        preprocessor: `"auto"` (default) to pack texts, a packer, or `None` if
            `fit` and `predict` get only token features.
        seed: Integer that seeds initial weights, the order of texts, and
            dropout. Defaults to 0. `None` draws one.
        adapter_name: Name of the first adapter, see `add_adapter`.
        use_encoder_dropout: See `AdapterModel`.
        windows: Maximum number of windows for texts longer than `max_length`
            tokens; 1 truncates them. `None` (default) uses the head's setting.
            For other settings of windows, pass a head:
            `head=heads.Classification(labels, windows=4, pooling="max")`. See
            `VectorHead`.

    Attributes:
        adapter_model: The active adapter's `AdapterModel`, the Keras model that
            takes token features.
        adapters: `AdapterSet` of all adapters.
        preprocessor: `PackerLayer` that packs texts, or `None`.

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
        encoder: Encoder | keras_hub.models.Backbone,
        tokenizer: Any = None,
        method: methods.Method | str = defaults.METHOD,
        labels: Sequence[str] | None = None,
        head: heads.Head | str | None = None,
        max_length: int | None = None,
        learning_rate: float | Literal["paper"] | None = None,
        preprocessor: Packer | PackerLayer | Literal["auto"] | None = "auto",
        seed: int | None = 0,
        adapter_name: str = "default",
        use_encoder_dropout: bool = True,
        windows: int | None = None,
    ) -> None:
        seed = parts.as_seed(seed)
        check_name(adapter_name)
        with parts.initial_weights(seed):
            model = AdapterModel(
                as_encoder(encoder),
                parts.as_method(method),
                parts.as_head(head, labels, windows),
                use_encoder_dropout=use_encoder_dropout,
                seed=seed,
                name=adapter_name,
            )
        self._set_up(
            *(model, tokenizer, max_length, learning_rate, preprocessor, seed),
            presets={adapter_name: method} if isinstance(method, str) else {},
        )

    @classmethod
    def of_adapter(
        cls,
        adapter_model: AdapterModel,
        tokenizer: Any = None,
        max_length: int | None = None,
        learning_rate: float | Literal["paper"] | None = None,
        preprocessor: Packer | PackerLayer | Literal["auto"] | None = "auto",
        seed: int | None = 0,
    ) -> Self:
        """Makes a text model from an `AdapterModel`.

        Args:
            adapter_model: An `AdapterModel` with a head, from `adapt`, `fuse`,
                `compose` or `load_adapter`.
            tokenizer: See `TextModel`.
            max_length: See `TextModel`.
            learning_rate: See `TextModel`.
            preprocessor: See `TextModel`.
            seed: See `TextModel`.

        Raises:
            UserError: If `adapter_model` is another kind of model.
        """
        parts.check_is_adapter_model(adapter_model)
        model = cls.__new__(cls)
        options = tokenizer, max_length, learning_rate, preprocessor, seed
        model._set_up(adapter_model, *options)
        return model

    def _set_up(
        self,
        model: AdapterModel,
        tokenizer: Any,
        max_length: int | None,
        learning_rate: float | Literal["paper"] | None,
        preprocessor: Packer | PackerLayer | Literal["auto"] | None,
        seed: int | None,
        presets: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(autocast=False, dtype="float32")
        self.encoder_info = model.encoder_info
        self.seed = parts.as_seed(seed)
        self.use_encoder_dropout = model.use_encoder_dropout
        self.learning_rate = learning_rate
        self.preprocessor = packer_layer.make_layer(
            tokenizer, model, preprocessor, max_length
        )
        self.adapters = AdapterSet(model)
        self.adapters.presets.update(presets or {})
        self.run_folder: Path | None = None
        self.compile()
        self.built = True

    @classmethod
    def from_preset(
        cls,
        preset: str | Path | Encoder,
        dtype: keras.DTypePolicy | str | None = None,
        quantize: str | None = None,
        **options: Any,
    ) -> Self:
        """Makes a text model from a pretrained encoder.

        Args:
            preset: Name, folder or address for `load_encoder`: `"minilm"`,
                `"bert_base_en_uncased"`, `"hf://owner/model"`. Or an
                `Encoder`; then also pass `tokenizer`.
            dtype: See `load_encoder`. Not allowed with an `Encoder`.
            quantize: See `load_encoder`. Not allowed with an `Encoder`.
            **options: See `TextModel`: `method`, `labels`, `head` ...

        Raises:
            UserError: If there is no such encoder, method or head, or an
                argument is given that is not allowed.

        Examples:
            >>> model = tf_adapters.TextModel.from_preset(
            ...     "minilm", method="lora", labels=("ham", "spam")
            ... )
        """
        if isinstance(preset, str | Path):
            parts.check_no_tokenizer(options.pop("tokenizer", None))
            name = str(preset)
            encoder, tokenizer = load_encoder(name, dtype, quantize=quantize)
            return cls(encoder, tokenizer, **options)
        parts.check_loads(dtype=dtype, quantize=quantize)
        return cls(preset, **options)

    @property
    def adapter_model(self) -> AdapterModel:
        """The `AdapterModel` of the active adapter."""
        return self.adapters.model

    @property
    def active(self) -> str:
        """Name of the active adapter."""
        return self.adapters.active

    def __repr__(self) -> str:
        weights = count_weights(self.adapter_model.trained_variables().values())
        return (
            f"<TextModel {self.active!r}: encoder {self.encoder_info.name!r}, "
            f"method {methods.name_of(self.method)!r}, head "
            f"{heads.name_of(self.head)!r}, {weights:,} trained weights>"
        )

    def compile(
        self,
        optimizer: Any = None,
        loss: Any = None,
        metrics: Any = None,
        **options: Any,
    ) -> None:
        """Compiles the active adapter's model, as Keras does.

        Args:
            optimizer: Default: AdamW with the model's learning rate, and
                gradients clipped to a global norm of 1.
            loss: Default: the head's loss.
            metrics: Default: accuracy if each text has one class.
            **options: See `keras.Model.compile`. On TensorFlow, `jit_compile`
                defaults to `False`, because XLA would compile a program for
                each length of a batch.
        """
        model = self.adapter_model
        if keras.backend.backend() == "tensorflow":
            options.setdefault("jit_compile", False)
        if optimizer is None:
            rate = defaults.learning_rate_for(
                methods.to_config(model.method),
                self.learning_rate,
                self.adapters.presets.get(self.active),
            )
            optimizer = keras.optimizers.AdamW(rate, global_clipnorm=1.0)
        if metrics is None and loss is None:
            metrics = losses.training_metrics(model.head)
        loss = losses.HeadLoss(model.head) if loss is None else loss
        model.compile(optimizer, loss=loss, metrics=metrics, **options)

    def add_adapter(
        self,
        name: str,
        adapter: methods.Method | str | os.PathLike[str],
        labels: Sequence[str] | None = None,
        head: heads.Head | str | None = None,
    ) -> None:
        """Adds another adapter on the same encoder and makes it active.

        It reads texts cut at this model's `max_length`. A warning is logged if
        a stored adapter was trained with another length.

        Args:
            name: Name of the adapter.
            adapter: Folder or `hf://owner/name` of a trained adapter, or a
                method or its name for a new adapter.
            labels: See `TextModel`; only with a method.
            head: See `TextModel`; only with a method.

        Raises:
            UserError: If the name is taken or not allowed, the adapter
                belongs to another encoder, or a stored adapter is given labels
                or a head, or has no head. The active adapter then stays the
                same.
        """
        source = parts.as_source(adapter)
        with self.adapters.added(
            name,
            lambda: parts.make_adapter(
                *(self.encoder_info, name, source, labels, head),
                *(self.seed, self.use_encoder_dropout),
            ),
        ):
            if isinstance(adapter, str) and isinstance(source, methods.Method):
                self.adapters.presets[name] = adapter
            if not isinstance(source, methods.Method):
                self.text_fields = fields_of(source)
                packer_layer.warn_of_length(name, source, self.preprocessor)
            self.compile()

    def set_active(self, name: str) -> None:
        """Makes another adapter active, so that it trains and predicts.

        Some adapters also train weights of the encoder (norms, biases). The
        previous adapter's values of these are stored, and the new adapter's
        values are put back.
        """
        self.adapters.activate(name)

    @contextlib.contextmanager
    def disabled(self) -> Iterator[Self]:
        """Disables the active adapter within a `with` block.

        The encoder's original weights and the active adapter's head are used.
        """
        with self.adapters.disabled():
            yield self
