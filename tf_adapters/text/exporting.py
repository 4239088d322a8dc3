"""Exports a text model as a SavedModel that takes texts, or as ONNX."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common import adapter_folder
from tf_adapters.common import own_files
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.text.columns import usual_fields
from tf_adapters.text.rows import rows_of

if TYPE_CHECKING:
    import os

    from tf_adapters.text.stored_model import StoredModel


FORMATS = ("tf_saved_model", "onnx")


def export_texts(
    text_model: StoredModel,
    path: str | os.PathLike[str],
    format: str,
    precision: str = "float32",
    texts: Any = None,
) -> None:
    """Writes a text model to a path, like `export_model` or `export_onnx`.

    Args:
        text_model: `TextModel` with a packer.
        path: Path of an earlier export, or one that does not exist yet.
        format: `"tf_saved_model"` or `"onnx"`.
        precision: See `export_onnx`.
        texts: Texts to check an ONNX file on, see `rows.rows_of`, or `None`
            (default) for built-in ones.

    Raises:
        UserError: If the format is unknown, `path` exists and is not such an
            export, or the packer does not use TensorFlow Text.
    """
    if format not in FORMATS:
        raise UserError(
            f'Expected `format` to be "{FORMATS[0]}", which takes texts, or '
            f'"{FORMATS[1]}". Received: format={cut(repr(format))}. '
            "`model.adapter_model.export(path, format)` writes Keras's other "
            "formats, which take token features."
        )
    path = Path(path)
    if format == "onnx":
        _check_replaced(path, "model*.onnx", "ONNX file")
        # Imported here, because models can train without TensorFlow.
        from tf_adapters.export import onnx_model

        packer = text_model.preprocessor.packer
        onnx_model.export_onnx(
            *(text_model.adapter_model, packer, path, precision),
            *_check_rows(text_model, texts),
        )
        return
    if precision != "float32" or texts is not None:
        raise UserError(
            "`precision` and `texts` have an effect only with "
            f'format="onnx". Received: format="{format}"'
        )
    _check_replaced(path, "saved_model.pb", "SavedModel")
    _export_saved_model(text_model, path)


def _check_rows(
    text_model: StoredModel, texts: Any
) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Returns the first 200 rows of texts, and their text fields."""
    if texts is None:
        return [], ()
    rows = rows_of(texts, None, text_model.head, labeled=False)
    return rows.at(range(min(200, len(rows)))), rows.fields


def _check_replaced(path: Path, file: str, what: str) -> None:
    if path.exists() and not any(path.glob(file)):
        raise UserError(
            f"{path} exists and holds no {what}; exporting there would "
            "replace it. Give a path that does not exist yet."
        )


def _export_saved_model(text_model: StoredModel, path: Path) -> None:
    from tf_adapters.export import saved_model

    partial = path.with_name(f".{path.name}.partial")
    fields = text_model.text_fields or usual_fields(text_model.head)
    try:
        version = saved_model.export_model(
            text_model.adapter_model,
            text_model.preprocessor.packer,
            partial / path.name,
            fields,
        )
        adapter_folder.replace(path, version)
    finally:
        own_files.remove(partial)
