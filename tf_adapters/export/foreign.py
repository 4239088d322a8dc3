"""Exports a run's adapter as a folder that other libraries load."""

from __future__ import annotations

from pathlib import Path
import tempfile
from typing import TYPE_CHECKING

from tf_adapters.common import adapter_folder
from tf_adapters.common import own_files
from tf_adapters.models import saving
from tf_adapters.runs import finished_run

if TYPE_CHECKING:
    import os

    from tf_adapters.config.settings import Config


def export_adapter(
    config: Config,
    model_dir: str | os.PathLike[str],
    form: str,
    with_head: bool = True,
) -> Path:
    """Writes a run's adapter in another library's format.

    Args:
        config: `Config` of the run.
        model_dir: Path of the run folder.
        form: `"adapterhub"` or `"peft"`.
        with_head: Whether to export the head too. Defaults to `True`.

    Returns:
        Path of the folder, `<model_dir>/<form>/<task>`. An existing folder is
        replaced.

    Raises:
        AdapterError: If the format cannot store the trained weights.
    """
    run = finished_run.load_to_export(config, model_dir)
    folder = Path(model_dir) / form / run.task.name
    with tempfile.TemporaryDirectory(dir=model_dir, prefix=".") as scratch:
        # Keep the folder's name, because AdapterHub's files store it.
        new = Path(scratch) / folder.name
        saving.save_adapter(run.model, new, format=form, with_head=with_head)
        own_files.make_folder(model_dir, form)
        adapter_folder.replace(folder, new)
    return folder
