"""Reads tensors that `torch.save` pickled, without PyTorch and running no code.

Such a file is a zip archive: `<stem>/data.pkl`, a pickle that names the tensors
and how they lie in `<stem>/data/<number>`, raw little-endian numbers. The
pickle needs few names; a file that asks for any other is refused.
"""

import collections
import io
import pickle
import zipfile

import ml_dtypes
import numpy as np

from tf_adapters.common.errors import AdapterError

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
            f"{path} cannot be read, it is damaged ({error!r}). Copy it again "
            "from where it was trained."
        ) from error


def _read(archive, path):
    (name,) = [n for n in archive.namelist() if n.endswith("/data.pkl")]
    stem = name.removesuffix("data.pkl")
    reader = _Tensors(io.BytesIO(archive.read(name)), archive, stem, path)
    tensors = reader.load()
    are_tensors = isinstance(tensors, dict) and all(
        isinstance(key, str) and isinstance(value, np.ndarray)
        for key, value in tensors.items()
    )
    if not are_tensors:
        raise AdapterError(f"{path} holds something else than named tensors.")
    return dict(tensors)


class _Tensors(pickle.Unpickler):
    """Knows the names that a file of tensors needs, and no other."""

    def __init__(self, file, archive, stem, path):
        super().__init__(file)
        self.archive, self.stem, self.path = archive, stem, path

    def find_class(self, module, name):
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _tensor
        if module == "torch" and name in _DTYPES:
            return _DTYPES[name]
        raise AdapterError(
            f"{self.path} asks to run `{module}.{name}`, which no file of "
            "weights needs. Nothing was run. Do not load it elsewhere either, "
            "unless you know who made it."
        )

    def persistent_load(self, pid):
        kind, dtype, key, _, count = pid
        if kind != "storage" or not isinstance(dtype, np.dtype):
            raise AdapterError(f"{self.path} holds an unknown {kind!r}.")
        data = self.archive.read(f"{self.stem}data/{key}")
        return np.frombuffer(data, dtype, count)


def _tensor(storage, offset, size, stride, *_):
    """Returns a copy of the part of a storage that a tensor is."""
    if any(step < 0 for step in stride) or any(n < 0 for n in size):
        raise ValueError(f"size {size}, stride {stride}")
    last = offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    if offset < 0 or (all(size) and last >= storage.size):
        raise ValueError("a tensor is beyond its storage")
    steps = [step * storage.itemsize for step in stride]
    view = np.lib.stride_tricks.as_strided(storage[offset:], size, steps)
    return np.array(view)
