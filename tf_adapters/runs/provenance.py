"""The versions, commit and device that a result was computed with."""

from pathlib import Path
import subprocess
import sys
from typing import Any


def provenance() -> dict[str, Any]:
    """Returns a dict with `versions`, `commit` and `device` of this process."""
    import keras
    import keras_hub

    import tf_adapters

    on_jax = keras.backend.backend() == "jax"
    versions = {
        "tf_adapters": tf_adapters.__version__,
        "keras": keras.__version__,
        "keras_hub": keras_hub.__version__,
    }
    for name in ("tensorflow", "jax") if on_jax else ("tensorflow",):
        # A run with JAX may do without TensorFlow.
        if name in sys.modules:
            versions[name] = sys.modules[name].__version__
    device = _jax_device() if on_jax else _device()
    return {"versions": versions, "commit": _commit(), "device": device}


def _jax_device() -> str:
    """Returns the kind of JAX's first device, such as "NVIDIA H100"."""
    import jax

    device = jax.devices()[0]
    return "CPU" if device.platform == "cpu" else device.device_kind


def _device() -> str:
    """Returns the name of TensorFlow's first GPU, or "CPU"."""
    import tensorflow as tf

    devices = tf.config.list_physical_devices("GPU")
    return devices[0].name if devices else "CPU"


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
