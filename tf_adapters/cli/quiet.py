"""Keeps TensorFlow's own start-up lines off the screen.

They are written by C++, to the process's standard error, while TensorFlow is
imported and looks for GPUs, and TF_CPP_MIN_LOG_LEVEL does not stop them.
"""

import contextlib
import importlib.abc
import importlib.util
import os
import sys
import tempfile

_NAME = "tensorflow"


def install():
    """Lets the first import of TensorFlow in this process be silent.

    What imports it, and when, does not matter: many commands never do.
    """
    if _NAME not in sys.modules:
        sys.meta_path.insert(0, _Finder())


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname, path=None, target=None):
        if fullname != _NAME:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(_NAME)
        if spec is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(importlib.abc.Loader):
    def __init__(self, loader):
        self._loader = loader

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self._loader
        with _silenced():
            self._loader.exec_module(module)
            # Here it says whether there is a GPU.
            module.config.list_physical_devices()


@contextlib.contextmanager
def _silenced():
    """Holds back what is written to standard error, unless there is an error.

    Lines of Python, too: the file descriptor is the process's.
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
