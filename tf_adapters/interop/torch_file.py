"""Reads tensors that `torch.save` pickled, without PyTorch and running no code.

Such a file is a zip archive: `<stem>/data.pkl`, a pickle that names the tensors
and how they lie in `<stem>/data/<number>`, raw little-endian numbers. The
pickle needs few names; a file that asks for any other is refused.
"""

import collections
import io
import math
import pickle
import typing
import zipfile

import ml_dtypes
import numpy as np

from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown

_DTYPES = {
    "FloatStorage": np.dtype("<f4"),
    "DoubleStorage": np.dtype("<f8"),
    "HalfStorage": np.dtype("<f2"),
    "BFloat16Storage": np.dtype(ml_dtypes.bfloat16),
    "LongStorage": np.dtype("<i8"),
    "IntStorage": np.dtype("<i4"),
}


def read_torch_file(path):
    """Returns a dict from name to array.

    Args:
        path: Path of a `.bin` file.

    Raises:
        AdapterError: If it is damaged, older than PyTorch 1.6, or holds
            anything but tensors by name.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return _read(archive, path)
    except FileNotFoundError as error:
        raise AdapterError(f"{path} is missing.") from error
    except AdapterError:
        raise
    except zipfile.BadZipFile as error:
        raise AdapterError(
            f"{path} is damaged, or in PyTorch's format from before 1.6. Load "
            "it with PyTorch and save it anew, best as safetensors."
        ) from error
    # A damaged pickle can raise nearly any error, of structure and of numbers.
    except Exception as error:
        raise AdapterError(
            f"{path} cannot be read, it is damaged ({shown(error)}). Copy it "
            "again from where it was trained."
        ) from error


def _read(archive, path):
    (name,) = [n for n in archive.namelist() if n.endswith("/data.pkl")]
    stem = name.removesuffix("data.pkl")
    _check_archive(archive, stem)
    views = _Views(io.BytesIO(archive.read(name)), path).load()
    are_tensors = isinstance(views, dict) and all(
        isinstance(key, str) and isinstance(value, _View)
        for key, value in views.items()
    )
    if not are_tensors:
        raise AdapterError(f"{path} holds something else than named tensors.")
    return {key: _array(view, archive, stem) for key, view in views.items()}


def _check_archive(archive, stem):
    """Raises an error of a file that PyTorch does not write like this."""
    if any(info.compress_type for info in archive.infolist()):
        # A small file could become one that no memory holds.
        raise ValueError("its parts are compressed")
    order = f"{stem}byteorder"
    if order in archive.namelist() and archive.read(order) != b"little":
        raise ValueError("its numbers are not little-endian")


class _Storage(typing.NamedTuple):
    """Numbers in the archive."""

    kind: str
    key: str
    count: int


class _View(typing.NamedTuple):
    """The part of a storage that a tensor is."""

    storage: _Storage
    offset: int
    size: tuple
    stride: tuple


class _Rebuild:
    """Stands for the function that makes a tensor; nothing can be set on it."""

    __slots__ = ()

    def __call__(self, storage, offset, size, stride, *_):
        return _View(storage, offset, size, stride)


class _Views(pickle.Unpickler):
    """Knows the names that a file of tensors needs, and no other.

    A pickle may set attributes of whatever it was given, and call its
    `__setstate__`. So it is given nothing that can be changed, a dtype of NumPy
    for example, which all of the process shares; arrays are made afterwards.
    """

    def __init__(self, file, path):
        super().__init__(file)
        self.path = path

    def find_class(self, module, name):
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _Rebuild()
        if module == "torch" and name in _DTYPES:
            return name
        raise AdapterError(
            f"{self.path} asks to run `{cut(module)}.{cut(name)}`, which no "
            "file of weights needs. Nothing was run. Do not load it elsewhere "
            "either, unless you know who made it."
        )

    def persistent_load(self, pid):
        what, kind, key, _, count = pid
        if what != "storage" or kind not in _DTYPES:
            raise AdapterError(f"{self.path} holds an unknown {shown(what)}.")
        return _Storage(kind, key, count)


def _array(view, archive, stem):
    """Returns a copy of the part of a storage that a tensor is."""
    (kind, key, count), offset, size, stride = view
    if any(step < 0 for step in stride) or any(n < 0 for n in size):
        raise ValueError(f"size {size}, stride {stride}")
    last = offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    is_beyond = all(size) and last >= count
    if offset < 0 or is_beyond or math.prod(size) > count:
        raise ValueError("a tensor is beyond its storage")
    data = archive.read(f"{stem}data/{key}")
    storage = np.frombuffer(data, _DTYPES[kind], count)
    steps = [step * storage.itemsize for step in stride]
    view = np.lib.stride_tricks.as_strided(storage[offset:], size, steps)
    return np.array(view)
