"""Writes tensors in the format of `torch.save`, with its opcodes."""

import struct
import zipfile

import numpy as np

_STORAGES = {
    "float32": "FloatStorage",
    "float16": "HalfStorage",
    "bfloat16": "BFloat16Storage",
}


def _text(value):
    content = value.encode()
    return b"X" + struct.pack("<I", len(content)) + content


def _integer(value):
    return b"J" + struct.pack("<i", value)


def _tuple(*items):
    return b"(" + b"".join(items) + b"t"


def _name(module, name):
    return f"c{module}\n{name}\n".encode()


def _ordered_dict():
    return _name("collections", "OrderedDict") + b")R"


def _tensor(key, array):
    storage = _tuple(
        _text("storage"),
        _name("torch", _STORAGES[str(array.dtype)]),
        _text(key),
        _text("cpu"),
        _integer(array.size),
    )
    strides = [step // array.itemsize for step in array.strides]
    arguments = _tuple(
        storage + b"Q",
        _integer(0),
        _tuple(*map(_integer, array.shape)),
        _tuple(*map(_integer, strides)),
        b"\x89",
        _ordered_dict(),
    )
    return _name("torch._utils", "_rebuild_tensor_v2") + arguments + b"R"


def write_torch_file(path, tensors, payload=None):
    """Writes a `.bin` file.

    Args:
        path: Path.
        tensors: Dict from name to array of float32, float16 or bfloat16.
        payload: Opcodes of an additional entry, for malicious files.
    """
    arrays = {name: np.ascontiguousarray(a) for name, a in tensors.items()}
    entries = [
        _text(name) + _tensor(str(number), array)
        for number, (name, array) in enumerate(arrays.items())
    ]
    if payload is not None:
        entries.append(_text("more") + payload)
    content = b"\x80\x02" + _ordered_dict() + b"("
    content += b"".join(entries) + b"u."
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", content)
        for number, array in enumerate(arrays.values()):
            archive.writestr(f"archive/data/{number}", array.tobytes())
        archive.writestr("archive/version", "3\n")
