"""The reader of PyTorch's files knows tensors, and runs nothing."""

import zipfile

import ml_dtypes
import numpy as np
import pytest

from tests.interop.torch_files import write_torch_file
from tf_adapters.common.errors import AdapterError
from tf_adapters.interop.torch_file import read_torch_file

TENSORS = {
    "a.weight": np.arange(6, dtype="float32").reshape(2, 3),
    "a.bias": np.array([0.5, -2.0], "float16"),
    "scalar": np.float32(3) * np.ones(()).astype("float32"),
}


def test_tensors_come_back(tmp_path):
    write_torch_file(tmp_path / "x.bin", TENSORS)
    found = read_torch_file(tmp_path / "x.bin")
    assert list(found) == list(TENSORS)
    for name, value in TENSORS.items():
        np.testing.assert_array_equal(found[name], value)
        assert found[name].dtype == value.dtype


@pytest.mark.parametrize(
    "name", ["os\nsystem", "builtins\neval", "torch\nload", "numpy\nsave"]
)
def test_a_file_that_names_code_is_refused_and_runs_nothing(name, tmp_path):
    trace = tmp_path / "trace"
    command = f"open({str(trace)!r}, 'w')".encode()
    payload = (
        b"c" + name.encode() + b"\n(X" + len(command).to_bytes(4, "little")
    )
    write_torch_file(tmp_path / "x.bin", TENSORS, payload + command + b"tR")
    with pytest.raises(AdapterError, match="Nothing was run"):
        read_torch_file(tmp_path / "x.bin")
    assert not trace.exists()


def test_a_file_of_something_else_than_tensors_is_refused(tmp_path):
    write_torch_file(tmp_path / "x.bin", TENSORS, b"X\x02\x00\x00\x00no")
    with pytest.raises(AdapterError, match="something else"):
        read_torch_file(tmp_path / "x.bin")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x80\x02}q\x00."])
def test_what_is_no_such_file_is_refused(content, tmp_path):
    (tmp_path / "x.bin").write_bytes(content)
    with pytest.raises(AdapterError, match="save it anew|damaged"):
        read_torch_file(tmp_path / "x.bin")


def test_a_file_changes_nothing_that_the_process_shares(tmp_path):
    # The opcode BUILD calls `__setstate__`, here to turn a type's bytes round.
    bytes_round = b"(K\x03X\x01\x00\x00\x00>NNNI-1\nI-1\nK\x00t"
    payload = b"ctorch\nBFloat16Storage\n" + bytes_round + b"b"
    write_torch_file(tmp_path / "x.bin", TENSORS, payload)
    with pytest.raises(AdapterError, match="damaged"):
        read_torch_file(tmp_path / "x.bin")
    assert np.dtype(ml_dtypes.bfloat16).byteorder != ">"


def _rewrite(path, compression=zipfile.ZIP_STORED, **more):
    """Writes a file's archive anew, with other parts beside its own."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in {**parts, **more}.items():
            archive.writestr(name, content)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"archive/byteorder": b"big"}, "little-endian"),
        ({"compression": zipfile.ZIP_DEFLATED}, "compressed"),
    ],
)
def test_an_archive_that_pytorch_here_does_not_write(change, reason, tmp_path):
    write_torch_file(tmp_path / "x.bin", TENSORS)
    _rewrite(tmp_path / "x.bin", **{"archive/byteorder": b"little"})
    assert list(read_torch_file(tmp_path / "x.bin")) == list(TENSORS)
    _rewrite(tmp_path / "x.bin", **change)
    with pytest.raises(AdapterError, match=reason):
        read_torch_file(tmp_path / "x.bin")


@pytest.mark.parametrize(
    ("shape", "strides"),
    [
        ((4, 4), (4, 1)),
        # By strides of 0 a file of a few bytes could fill all memory.
        ((99, 4), (0, 1)),
    ],
)
def test_a_tensor_beyond_its_storage_is_refused(shape, strides, tmp_path):
    path = tmp_path / "x.bin"
    write_torch_file(path, {"a": np.zeros((3, 4), "float32")})
    with zipfile.ZipFile(path) as archive:
        content = archive.read("archive/data.pkl")

    def numbers(*pairs):
        return b"".join(
            b"(J%cZJ%cZt".replace(b"Z", b"\0\0\0") % pair for pair in pairs
        )

    there = numbers((3, 4), (4, 1))
    assert content.count(there) == 1
    content = content.replace(there, numbers(shape, strides))
    _rewrite(path, **{"archive/data.pkl": content})
    with pytest.raises(AdapterError, match="beyond its storage"):
        read_torch_file(path)
