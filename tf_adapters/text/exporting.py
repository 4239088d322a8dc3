"""Exports a text model as a SavedModel that takes texts."""

from pathlib import Path

from tf_adapters.common import adapter_folder
from tf_adapters.common import own_files
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.text.columns import usual_fields

FORMAT = "tf_saved_model"


def export_texts(text_model, path, format):
    """Writes a text model as `tf_adapters.export_model` does, to a path.

    Args:
        text_model: `TextModel` with a packer.
        path: Path that does not exist yet, or an earlier SavedModel.
        format: `"tf_saved_model"`.

    Raises:
        UserError: If the format is different, `path` exists and is not a
            SavedModel, or the packer does not use TensorFlow Text.
    """
    if format != FORMAT:
        raise UserError(
            f'A text model is exported with format="{FORMAT}", which takes '
            f"texts. Received: format={cut(repr(format))}. "
            "`model.adapter_model.export(path, format)` writes Keras's other "
            "formats, which take token features."
        )
    # Imported here, because models can train without TensorFlow.
    from tf_adapters.export import saved_model

    path = Path(path)
    if path.exists() and not (path / "saved_model.pb").is_file():
        raise UserError(
            f"{path} exists and holds no SavedModel; exporting there would "
            "replace it. Give a path that does not exist yet."
        )
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
