"""Hides the messages that TensorFlow prints when it is imported.

TensorFlow's C++ code writes these messages to standard error while TensorFlow
is imported and looks for GPUs. The environment variable TF_CPP_MIN_LOG_LEVEL
does not suppress them.
"""

from collections.abc import Iterator
import contextlib
import importlib.abc
import importlib.util
import os
import sys
import tempfile
from typing import Any

_NAME = "tensorflow"


def install() -> None:
    """Hides TensorFlow's messages when it is later imported in this process.

    This function does not import TensorFlow, which many commands do not need.
    It has no effect if TensorFlow is already imported.
    """
    if _NAME not in sys.modules:
        sys.meta_path.insert(0, _Finder())


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, fullname: Any, path: Any = None, target: Any = None
    ) -> Any:
        if fullname != _NAME:
            return None
        # The others are asked. This finder stays, because a caller may only
        # ask whether TensorFlow is installed.
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(_NAME)
        sys.meta_path.insert(0, self)
        if spec is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(importlib.abc.Loader):
    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        module.__loader__ = module.__spec__.loader = self._loader
        with _silenced():
            self._loader.exec_module(module)
            # This call prints messages about GPUs.
            module.config.list_physical_devices()


@contextlib.contextmanager
def _silenced() -> Iterator[None]:
    """Context manager that hides everything its block writes to standard error.

    Output from C++ and from Python is hidden. If the block raises an error, the
    hidden output is shown.
    """
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        except BaseException:
            held.seek(0)
            os.write(kept, held.read())
            raise
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)
