"""Enables oneDNN, which doubles TensorFlow's speed on some processors."""

import logging
import os
from pathlib import Path
import sys

_VARIABLE = "TF_ENABLE_ONEDNN_OPTS"
# TensorFlow enables oneDNN by default on processors with one of these flags.
_BY_DEFAULT = ("avx512_vnni", "avx512_bf16", "avx_vnni", "amx_tile")
_CPU_INFO = Path("/proc/cpuinfo")


def switch_on() -> None:
    """Enables oneDNN in TensorFlow, unless `TF_ENABLE_ONEDNN_OPTS` is set.

    TensorFlow reads the variable when it is imported. If TensorFlow was already
    imported and does not enable oneDNN by default, this logs a warning.
    """
    if _VARIABLE in os.environ:
        return
    if "tensorflow" not in sys.modules:
        os.environ[_VARIABLE] = "1"
    elif not _is_on_by_default():
        logging.getLogger(__name__).warning(
            "TensorFlow was imported before tf_adapters, and computes without "
            "oneDNN, which can double its speed on this processor. Import "
            "tf_adapters first, or set %s=1.",
            _VARIABLE,
        )


def _is_on_by_default() -> bool:
    """Returns whether TensorFlow enables oneDNN by default on this processor.

    Returns `True` if the processor's features are unknown.
    """
    if not _CPU_INFO.is_file():
        return True
    text = _CPU_INFO.read_text(encoding="utf-8", errors="replace")
    return any(flag in text for flag in _BY_DEFAULT)
