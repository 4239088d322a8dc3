"""Reads files of `torch.save` without PyTorch and without running their code.

Such a file is a zip archive. `<stem>/data.pkl` is a pickle with the names of
the tensors and their positions in `<stem>/data/<number>`, which have raw
little-endian numbers. Files that would need far more memory than their size
are rejected: those in which the parts of the archive are compressed or overlap,
or in which the tensors together are much larger than the stored numbers.
"""

from collections.abc import Iterable
import itertools
import math
from pathlib import Path
import zipfile

import ml_dtypes
import numpy as np

from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import UserError
from tf_adapters.common.text_files import check_file
from tf_adapters.interop import torch_pickle

_DTYPES = {
    "FloatStorage": np.dtype("<f4"),
    "DoubleStorage": np.dtype("<f8"),
    "HalfStorage": np.dtype("<f2"),
    "BFloat16Storage": np.dtype(ml_dtypes.bfloat16),
    "LongStorage": np.dtype("<i8"),
    "IntStorage": np.dtype("<i4"),
}
# Tied weights are one storage with two names, so the tensors together can be
# twice as large as the stored numbers.
_MAX_COPIES = 2
# In bytes.
_LARGEST_FILE = 1 << 40


def read_torch_file(path: Path) -> dict[str, np.ndarray]:
    """Reads a file of `torch.save` into a dict from name to array.

    Args:
        path: Path of a `.bin` file.

    Raises:
        AdapterError: If the file is missing, damaged, from before PyTorch 1.6,
            or has anything but named tensors.
    """
    try:
        check_file(path, _LARGEST_FILE)
        with zipfile.ZipFile(path) as archive:
            return _read(archive)
    except FileNotFoundError as error:
        raise AdapterError(f"{path} is missing.") from error
    except (zipfile.BadZipFile, zipfile.LargeZipFile) as error:
        raise AdapterError(
            f"{path} is damaged, or in PyTorch's format from before 1.6. Load "
            "it with PyTorch and save it again, best as safetensors."
        ) from error
    except (UserError, torch_pickle.PickleError) as error:
        raise AdapterError(f"{path} cannot be read: {error}.") from error
    # A damaged archive can raise nearly any error. Its message is left out, as
    # it can quote the file.
    except Exception as error:
        raise AdapterError(
            f"{path} cannot be read: it is damaged ({type(error).__name__}). "
            "Copy it again from where it was trained."
        ) from error


def _read(archive: zipfile.ZipFile) -> dict[str, np.ndarray]:
    _check_archive(archive)
    name = _name_of_pickle(archive)
    stem = name.removesuffix("data.pkl")
    _check_byte_order(archive, stem)
    views = torch_pickle.read_views(archive.read(name), _DTYPES)
    for view in views.values():
        _check_view(view)
    keys = {view.storage.key for view in views.values()}
    data = {key: archive.read(f"{stem}data/{key}") for key in keys}
    _check_total(views.values(), sum(map(len, data.values())))
    return {
        name: _array(view, data[view.storage.key])
        for name, view in views.items()
    }


def _name_of_pickle(archive: zipfile.ZipFile) -> str:
    names = [n for n in archive.namelist() if n.endswith("/data.pkl")]
    if len(names) != 1:
        raise torch_pickle.PickleError("it has no list of tensors")
    return names[0]


def _check_archive(archive: zipfile.ZipFile) -> None:
    """Raises an error if reading the archive could take too much memory.

    The files in the archive must be uncompressed, and must not overlap.
    """
    parts = sorted(archive.infolist(), key=lambda part: part.header_offset)
    if any(part.compress_type for part in parts):
        raise torch_pickle.PickleError("its parts are compressed")
    if any(part.file_size != part.compress_size for part in parts):
        raise torch_pickle.PickleError("its parts are of another size")
    for one, other in itertools.pairwise(parts):
        if one.header_offset + one.file_size >= other.header_offset:
            raise torch_pickle.PickleError("its parts overlap")
    if len(set(archive.namelist())) < len(parts):
        raise torch_pickle.PickleError("two of its parts have one name")


def _check_byte_order(archive: zipfile.ZipFile, stem: str) -> None:
    order = f"{stem}byteorder"
    if order in archive.namelist() and archive.read(order) != b"little":
        raise torch_pickle.PickleError("its numbers are not little-endian")


def _check_view(view: torch_pickle.View) -> None:
    """Raises an error if a tensor extends beyond its storage."""
    (_, _, count), offset, size, stride = view
    last = offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    is_beyond = offset > count or (all(size) and last >= count)
    if is_beyond or math.prod(size) > count:
        raise torch_pickle.PickleError("a tensor is beyond its storage")


def _check_total(views: Iterable[torch_pickle.View], stored: int) -> None:
    """Raises an error if the tensors would be much larger than the file.

    Several tensors can share the same stored numbers.

    Args:
        views: Iterable with a `View` for each tensor.
        stored: Total size of the stored numbers, in bytes.
    """
    total = sum(
        math.prod(view.size) * _DTYPES[view.storage.kind].itemsize
        for view in views
    )
    if total > _MAX_COPIES * stored:
        raise torch_pickle.PickleError(
            "its tensors are together much larger than the file"
        )


def _array(view: torch_pickle.View, data: bytes) -> np.ndarray:
    """Copies a tensor from the bytes of its storage to a new array."""
    (kind, _, count), offset, size, stride = view
    numbers = np.frombuffer(data, _DTYPES[kind], count)
    steps = [step * numbers.itemsize for step in stride]
    part = np.lib.stride_tricks.as_strided(numbers[offset:], size, steps)
    return np.array(part)
