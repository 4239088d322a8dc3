"""A Keras model of texts that can be saved and exported."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.models import saving
from tf_adapters.text import exporting
from tf_adapters.text import model_file
from tf_adapters.text.fitting_model import FittingModel

if TYPE_CHECKING:
    from tf_adapters.text.text_model import TextModel


class StoredModel(FittingModel):
    """Implements `save_adapter`, `save` and `export` of a text model."""

    def save_adapter(
        self,
        folder: str | os.PathLike[str],
        details: dict[str, Any] | None = None,
        overwrite: bool = False,
        **options: Any,
    ) -> int | None:
        """Saves the active adapter, with its labels and packing settings.

        `tf_adapters.load(folder)` restores the text model.

        Args:
            folder: Path.
            details: Dict of plain values for the model card. Default: none.
            overwrite: See `tf_adapters.save_adapter`.
            **options: See `tf_adapters.save_adapter`.

        Returns:
            Size of the weights file in bytes, or `None` for the formats of
            other libraries.
        """
        self.adapters.check_enabled("Save the adapter")
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

    def save(
        self,
        filepath: str | os.PathLike[str],
        overwrite: bool = True,
        **options: Any,
    ) -> None:
        """Saves the whole model as a `.keras` file; see `keras.Model.save`.

        The file contains the encoder, all adapters with their labels, the
        tokenizer with its vocabulary, `max_length`, and the optimizer of the
        active adapter. The encoder's weights make it large: 93 MB with
        `minilm`. `save_adapter` saves only the adapter.

        If saving fails, for example because the disk is full, an earlier file
        at this path is unchanged.

        `tf_adapters.load(path)` restores the text model. So does
        `keras.saving.load_model(path)` after `from tf_adapters import
        TextModel`.

        Args:
            filepath: Path that ends in `.keras`.
            overwrite: See `keras.Model.save`.
            **options: See `keras.Model.save`.

        Raises:
            UserError: If the path does not end in `.keras`, an adapter is
                folded (merged into the encoder's weights) or disabled, or the
                tokenizer cannot be saved.
        """
        model_file.check_can_be_saved(self, filepath)
        # Keras warns when it loads an optimizer that has no variables.
        if not self.optimizer.built:
            self.optimizer.build(self.trainable_variables)
        path = Path(os.path.realpath(filepath))
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not overwrite:
            # Keras asks whether to overwrite the file.
            super().save(filepath, overwrite=False, **options)
            return
        partial = path.with_name(f".{path.stem}.{os.getpid()}.partial.keras")
        try:
            super().save(partial, **options)
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)

    def save_weights(self, *args: Any, **options: Any) -> None:
        """Saves all weights; see `keras.Model.save_weights`."""
        self.adapters.check_enabled("Save the weights")
        model_file.check_not_folded(self)
        self.adapter_model.check_encoder()
        super().save_weights(*args, **options)

    def load_weights(self, *args: Any, **options: Any) -> None:
        """Loads all weights; see `keras.Model.load_weights`."""
        self.adapters.check_enabled("Load the weights")
        model_file.check_not_folded(self)
        self.adapter_model.hold_encoder()
        super().load_weights(*args, **options)

    def export(
        self,
        filepath: str | os.PathLike[str],
        format: str = "tf_saved_model",
        **options: Any,
    ) -> None:
        """Writes a SavedModel that takes texts, or a file that takes token ids.

        The SavedModel includes the tokenizer. Its signatures are the same as
        those of `tf_adapters.export_model` and `tf-adapters export`:
        `serving_default` takes texts, and `token_ids` takes token features.
        Without a preprocessor, see `keras.Model.export`.

        Args:
            filepath: Path of the SavedModel, or of the folder with the file. An
                earlier export is replaced.
            format: `"tf_saved_model"` (default); or `"onnx"`, `"litert"` or
                `"openvino"`, see `tf_adapters.export_onnx`, `export_litert`
                and `export_openvino`.
            **options: For files that take token ids: `precision` (`"float32"`,
                `"int8"` and others, see these functions), and `texts`, a list
                or a table, on which file and model are compared.
                Without a preprocessor, see `keras.Model.export`.

        Raises:
            UserError: If the format is unknown, or `filepath` exists but is
                not an export of this format.

        Examples:
            >>> model = tf_adapters.TextModel(
            ...     encoder, tokenizer, labels=("negative", "positive")
            ... )
            >>> model.export("films")
            >>> serve = tf.saved_model.load("films").signatures[
            ...     "serving_default"
            ... ]
            >>> sorted(serve(tf.constant(["a fine film"])))
            ['label', 'label_id', 'probabilities']
        """
        if self.preprocessor is None:
            return self.adapter_model.export(filepath, format, **options)
        return exporting.export_texts(self, filepath, format, **options)

    def get_config(self) -> dict[str, Any]:
        return model_file.config_of_text_model(self)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> TextModel:
        return model_file.text_model_from(cls, config)

    def save_own_variables(self, store: Any) -> None:
        model_file.save_weights(self, store)

    def load_own_variables(self, store: Any) -> None:
        model_file.load_weights(self, store)
