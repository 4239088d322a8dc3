"""Tests that PyTorch's files are read without running code."""

import io
import tracemalloc
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
    with pytest.raises(AdapterError, match="something other"):
        read_torch_file(tmp_path / "x.bin")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x80\x02}q\x00."])
def test_what_is_no_such_file_is_refused(content, tmp_path):
    (tmp_path / "x.bin").write_bytes(content)
    with pytest.raises(AdapterError, match="save it again|damaged"):
        read_torch_file(tmp_path / "x.bin")


def test_a_file_changes_nothing_that_the_process_shares(tmp_path):
    # The opcode BUILD calls `__setstate__`, here to turn a type's bytes round.
    bytes_round = (
        b"(K\x03X\x01\x00\x00\x00>NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00t"
    )
    payload = b"ctorch\nBFloat16Storage\n" + bytes_round + b"b"
    write_torch_file(tmp_path / "x.bin", TENSORS, payload)
    with pytest.raises(AdapterError, match="sets attributes"):
        read_torch_file(tmp_path / "x.bin")
    assert np.dtype(ml_dtypes.bfloat16).byteorder != ">"


def _rewrite(path, compression=zipfile.ZIP_STORED, **more):
    """Writes a file's archive again, with other parts besides its own."""
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
        # With strides of 0, a file of a few bytes could fill all memory.
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


# Nested tuples that double in size: few bytes, but 2**60 leaves.
_DOUBLED = b")" + b"".join(b"q%ch%c\x86" % (i, i) for i in range(9, 69))


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"N" + _DOUBLED + b"X\x01\x00\x00\x00as", "by something other"),
        (b"}" + _DOUBLED + b"Ns", "by something other"),
        (b"}(" + _DOUBLED + b"Nu", "by something other"),
        (_DOUBLED + _DOUBLED + b"\x93", "something other than text"),
        (_DOUBLED + b"Q", "unknown kind of storage"),
        (b"\x88Q", "unknown kind of storage"),
        (
            b"ctorch._utils\n_rebuild_tensor_v2\n" + _DOUBLED + b"R",
            "not make a tensor",
        ),
        (b"ctorch._utils\n_rebuild_tensor_v2\nNR", "not a tuple"),
        (b"ctorch._utils\n_rebuild_tensor_v2\n)b", "sets attributes"),
        (b"}" + _DOUBLED + b"b", "other than named tensors"),
        (_DOUBLED, "other than named tensors"),
        (b"\x8a\xff" + b"\x7f" * 255, "other than named tensors"),
        (b"]", "opcode EMPTY_LIST"),
        (b"(cos\nsystem\no", "os.system"),
        (b"(ios\nsystem\n", "opcode INST"),
        (b"c\x1b[31m\n" + b"x" * 999 + b"\n", "asks to run something"),
        (b"h\x07", "tensors is damaged"),
        (b"t", "tensors is damaged"),
    ],
)
def test_a_pickle_that_means_harm_is_refused_at_once(payload, reason, tmp_path):
    write_torch_file(tmp_path / "x.bin", TENSORS, payload)
    with pytest.raises(AdapterError, match=reason) as raised:
        read_torch_file(tmp_path / "x.bin")
    assert len(str(raised.value)) < 400


def test_an_index_of_the_memo_takes_no_room(tmp_path):
    # In C the memo is an array, of 6 GB for this index.
    write_torch_file(tmp_path / "x.bin", TENSORS, b"Nr\xff\xff\xff\x2f")
    tracemalloc.start()
    try:
        with pytest.raises(AdapterError, match="other than named tensors"):
            read_torch_file(tmp_path / "x.bin")
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def _pickle_of(path):
    with zipfile.ZipFile(path) as archive:
        return archive.read("archive/data.pkl")


def test_what_pytorch_says_besides_the_tensors_is_left_out(tmp_path):
    # A model's `state_dict` has the versions of its modules as an attribute.
    path = tmp_path / "x.bin"
    write_torch_file(path, TENSORS)
    versions = b"}X\x09\x00\x00\x00_metadata}X\x00\x00\x00\x00Nssb."
    content = _pickle_of(path)[:-1] + versions
    _rewrite(path, **{"archive/data.pkl": content})
    assert list(read_torch_file(path)) == list(TENSORS)


def test_a_list_of_more_tensors_than_an_adapter_has_is_refused(tmp_path):
    path = tmp_path / "x.bin"
    write_torch_file(path, TENSORS)
    content = _pickle_of(path)[:-1] + b"N0" * 1_000_001 + b"."
    _rewrite(path, **{"archive/data.pkl": content})
    with pytest.raises(AdapterError, match="2,000,000 are enough"):
        read_torch_file(path)


# How a pickle has the key of the first storage.
KEY_0 = b"X\x01\x00\x00\x000"


@pytest.mark.parametrize(("names", "are_read"), [(2, True), (3, False)])
def test_tensors_of_one_storage_are_as_many_as_ties_have(
    names, are_read, tmp_path
):
    # 2,000 names of a storage of 2 MB are 4 GB.
    path = tmp_path / "x.bin"
    tensors = {f"t{i}": np.full((300,), i, "float32") for i in range(names)}
    write_torch_file(path, tensors)
    content = _pickle_of(path)
    for number in range(1, names):
        content = content.replace(b"X\x01\x00\x00\x00%d" % number, KEY_0)
    parts = {"archive/data.pkl": content, "archive/data/0": bytes(1200)}
    with zipfile.ZipFile(path, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    if are_read:
        assert list(read_torch_file(path)) == list(tensors)
        return
    with pytest.raises(AdapterError, match="much larger than the file"):
        read_torch_file(path)


def _patch_directory(path, name, offset, value):
    """Writes 4 bytes into the entry of a part in an archive's directory."""
    content = bytearray(path.read_bytes())
    entry = content.rindex(name.encode()) - 46
    assert content[entry : entry + 4] == b"PK\x01\x02"
    content[entry + offset : entry + offset + 4] = value.to_bytes(4, "little")
    path.write_bytes(content)


def test_parts_within_others_are_refused(tmp_path):
    path, inner = tmp_path / "x.bin", io.BytesIO()
    name = "archive/data/1"
    write_torch_file(path, TENSORS)
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr(name, bytes(4))
        end = archive.fp.tell()
    _rewrite(path, **{"archive/data/0": inner.getvalue()[:end]})
    assert list(read_torch_file(path)) == list(TENSORS)
    # According to the archive, the part lies within the previous one.
    place = path.read_bytes().index(inner.getvalue()[:end])
    _patch_directory(path, name, 42, place)
    with pytest.raises(AdapterError, match="its parts overlap"):
        read_torch_file(path)


def test_a_part_that_says_it_is_larger_is_refused(tmp_path):
    path = tmp_path / "x.bin"
    write_torch_file(path, TENSORS)
    _patch_directory(path, "archive/data/0", 24, 2**31)
    with pytest.raises(AdapterError, match="of another size"):
        read_torch_file(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_parts_of_one_name_are_refused(tmp_path):
    path = tmp_path / "x.bin"
    write_torch_file(path, TENSORS)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("archive/data/0", bytes(24))
    with pytest.raises(AdapterError, match="one name"):
        read_torch_file(path)


def test_what_a_damaged_file_holds_is_not_printed(tmp_path):
    path = tmp_path / "x.bin"
    write_torch_file(path, TENSORS)
    secret = b"X\x06\x00\x00\x00secret"
    content = _pickle_of(path).replace(KEY_0, secret)
    assert content.count(secret) == 1
    _rewrite(path, **{"archive/data.pkl": content})
    with pytest.raises(AdapterError, match="it is damaged") as raised:
        read_torch_file(path)
    assert "secret" not in str(raised.value)
