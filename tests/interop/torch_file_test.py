"""The reader of PyTorch's files knows tensors, and runs nothing."""

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


def test_a_tensor_beyond_its_storage_is_refused(tmp_path):
    path = tmp_path / "x.bin"
    write_torch_file(path, {"a": np.zeros((3, 4), "float32")})
    content = path.read_bytes()
    # The first of the shape's numbers, in a file without compression.
    shape = b"J\x03\x00\x00\x00J\x04\x00\x00\x00"
    assert content.count(shape) == 1
    path.write_bytes(content.replace(shape, b"J\x04" + shape[2:]))
    with pytest.raises(AdapterError, match="damaged"):
        read_torch_file(path)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x80\x02}q\x00."])
def test_what_is_no_such_file_is_refused(content, tmp_path):
    (tmp_path / "x.bin").write_bytes(content)
    with pytest.raises(AdapterError, match="save it anew|damaged"):
        read_torch_file(tmp_path / "x.bin")
