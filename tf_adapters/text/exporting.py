"""Exports a text model: to a SavedModel, which takes texts, or to other files.

The other files, such as ONNX files, take token ids.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common import adapter_folder
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown
from tf_adapters.text import arguments
from tf_adapters.text.columns import is_dataset
from tf_adapters.text.columns import usual_fields
from tf_adapters.text.rows import rows_of

if TYPE_CHECKING:
    import os

    from tf_adapters.text.stored_model import StoredModel


# Formats of files that take token ids. `export.<format>_model` writes them.
_TOKEN_FILES = ("onnx", "litert", "openvino")


def export_texts(
    text_model: StoredModel,
    path: str | os.PathLike[str],
    format: str,
    precision: str = "float32",
    texts: Any = None,
    **options: Any,
) -> None:
    """Exports a text model to a path.

    Args:
        text_model: `TextModel` with a packer.
        path: Path that does not exist yet, or path of an earlier export of the
            same format, which is replaced.
        format: `"tf_saved_model"`, `"onnx"`, `"litert"` or `"openvino"`.
        precision: See `export_onnx`. Not for SavedModels.
        texts: Texts to check a file on, a list or a table, see `rows.rows_of`,
            or `None` (default) for built-in ones. Not for SavedModels.
        **options: Other options of `keras.Model.export`, which are refused.

    Raises:
        UserError: If the format is unknown, `path` exists but is not an export
            of this format, the packer does not use TensorFlow Text, or
            `texts` is a `tf.data.Dataset`. Also if there are other options.
    """
    arguments.check_no_options("export", options)
    path = Path(path)
    names = ", ".join(f'"{name}"' for name in _TOKEN_FILES)
    if format not in ("tf_saved_model", *_TOKEN_FILES):
        raise UserError(
            'Expected `format` to be "tf_saved_model", which takes texts, or '
            f"one of {names}. Received: format={cut(repr(format))}. "
            "`model.adapter_model.export(path, format)` writes Keras's other "
            "formats, which take token features."
        )
    if format == "tf_saved_model":
        if precision != "float32" or texts is not None:
            raise UserError(
                "`precision` and `texts` have no effect on a SavedModel. Give "
                f"another format: {names}."
            )
        _export_saved_model(text_model, path)
        return
    # Imported here, because models can train without TensorFlow.
    module = importlib.import_module(f"tf_adapters.export.{format}_model")
    write = getattr(module, f"export_{format}")
    packer = text_model.preprocessor.packer
    rows = _check_rows(text_model, texts)
    write(text_model.adapter_model, packer, path, precision, **rows)


def _check_rows(text_model: StoredModel, texts: Any) -> dict[str, Any]:
    """Returns a dict with arguments of `export_onnx`: `rows`, `text_fields`.

    The rows are the first 200 texts. There are none if `texts` is `None`.
    """
    if texts is None:
        return {"text_fields": text_model.text_fields or ()}
    if is_dataset(texts):
        raise UserError(
            "`texts` must be a list or a table: the texts of a "
            "`tf.data.Dataset` are not read here. Received: "
            f"texts={shown(texts)}"
        )
    fields = text_model.text_fields
    rows = rows_of(texts, None, text_model.head, labeled=False, known=fields)
    first = rows.at(range(min(200, len(rows))))
    return {"rows": first, "text_fields": rows.fields}


def _export_saved_model(text_model: StoredModel, path: Path) -> None:
    from tf_adapters.export import saved_model
    from tf_adapters.export.replaced_folder import replaced_folder

    fields = text_model.text_fields or usual_fields(text_model.head)
    with replaced_folder(path, "saved_model.pb", "SavedModel") as new:
        version = saved_model.export_model(
            text_model.adapter_model,
            text_model.preprocessor.packer,
            new.with_name(".versions") / path.name,
            fields,
        )
        adapter_folder.replace(new, version)
