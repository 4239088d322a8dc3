"""The adapter of a run as a folder that other libraries load."""

import contextlib
from pathlib import Path
import shutil

from tf_adapters.models import saving
from tf_adapters.runs import finished_run


def export_adapter(config, model_dir, form, with_head=True):
    """Writes a run's adapter in another library's format.

    Args:
        config: `Config` of the run.
        model_dir: The run's folder.
        form: `"adapterhub"` or `"peft"`.
        with_head: Whether the head goes along. Defaults to `True`.

    Returns:
        Path of the folder, `<model_dir>/<form>/<task>`. One that is there is
        replaced.

    Raises:
        AdapterError: If the format has no room for what trained.
    """
    run = finished_run.load_to_export(config, model_dir)
    folder = Path(model_dir) / form / run.task.name
    with _put_aside(folder):
        saving.save_adapter(run.model, folder, format=form, with_head=with_head)
    return folder


@contextlib.contextmanager
def _put_aside(folder):
    """Removes an earlier folder once its successor is there."""
    earlier = folder.with_name(f"{folder.name}.earlier")
    if folder.exists():
        shutil.rmtree(earlier, ignore_errors=True)
        folder.rename(earlier)
    try:
        yield
    except BaseException:
        if earlier.exists():
            earlier.rename(folder)
        raise
    shutil.rmtree(earlier, ignore_errors=True)
