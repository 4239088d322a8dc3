"""The versions, commit and device that a result was computed with."""

from pathlib import Path
import subprocess
from typing import Any

import tensorflow as tf


def provenance() -> dict[str, Any]:
    """Returns a dict with `versions`, `commit` and `device` of this process."""
    import keras
    import keras_hub

    import tf_adapters

    versions = {
        "tf_adapters": tf_adapters.__version__,
        "tensorflow": tf.__version__,
        "keras": keras.__version__,
        "keras_hub": keras_hub.__version__,
    }
    if keras.backend.backend() == "jax":
        import jax

        versions["jax"] = jax.__version__
    devices = tf.config.list_physical_devices("GPU")
    return {
        "versions": versions,
        "commit": _commit(),
        "device": devices[0].name if devices else "CPU",
    }


def _commit() -> str | None:
    """Returns the commit of this source code, or `None` outside a repository.

    `+changes` is appended if the working tree has changes. Also returns `None`
    if the package is installed inside another repository that does not track
    the package's files. Then only the version identifies the code.
    """
    command = ["git", "-C", str(Path(__file__).parent)]
    try:
        _, head, status = (
            subprocess.run(
                [*command, *arguments],
                capture_output=True,
                text=True,
                timeout=10,
                check=True,
            ).stdout.strip()
            for arguments in (
                ["ls-files", "--error-unmatch", Path(__file__).name],
                ["rev-parse", "--short", "HEAD"],
                ["status", "--porcelain", "--untracked-files=no"],
            )
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return head + ("+changes" if status else "")
