"""Tokenised training texts on disk: made once, then mapped into memory.

A cache is a folder named after what decides the tokens: the rows, the
tokenizer, the longest input and the head. Processes that want the same one wait
for the first to write it. Values are read through memory maps, which TensorFlow
makes anew in each graph (`ImmutableConst`): no process holds them, and a graph
that goes to another process takes only their path along.
"""

import contextlib
import dataclasses
import fcntl
import hashlib
import json
import logging
from pathlib import Path
import shutil
import tempfile

import keras_hub
import numpy as np
import tensorflow as tf

from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import UserError
from tf_adapters.data.batches.examples import to_examples
from tf_adapters.data.rows import sampling

_LOGGER = logging.getLogger(__name__)
_FORMAT = 1
_ROWS_AT_ONCE = 8192
_CONTENTS = "contents.json"


def examples(head, fields, packer, rows, folder):
    """Returns labelled rows as `Examples` whose tokens stay on disk.

    They are those of `head.encode`, but for `source`, which is `None`.

    Args:
        head: A head, see `tf_adapters.heads`.
        fields: Keys of the rows that it reads.
        packer: `TextPacker`.
        rows: Sequence of rows, at least one.
        folder: Folder of the caches.

    Raises:
        ConfigError: If the folder cannot be written to.
    """
    own = Path(folder).absolute() / _key(head, fields, packer, rows)
    with _lock(own):
        columns = _read_contents(own)
        if columns is None:
            chunks = (
                head.encode(rows[i : i + _ROWS_AT_ONCE], fields, packer)
                for i in range(0, len(rows), _ROWS_AT_ONCE)
            )
            columns = _write(own, chunks)
    few = to_examples(
        head.encode(rows[:1], fields, packer), packer.special_tokens.pad
    )
    return _examples(own, columns, dataclasses.replace(few, source=None))


def _key(head, fields, packer, rows):
    decisive = {
        "format": _FORMAT,
        "rows": sampling.fingerprint(rows),
        "tokenizer": _tokenizer_digest(packer.tokenizer),
        "frame": dataclasses.asdict(packer.special_tokens),
        "max_length": packer.max_length,
        "fields": list(fields),
        "head": [type(head).__name__, dataclasses.asdict(head)],
    }
    text = json.dumps(decisive, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _tokenizer_digest(tokenizer):
    """Returns a digest of all that decides which tokens texts become."""
    digest = hashlib.sha256(type(tokenizer).__name__.encode())
    if not isinstance(tokenizer, keras_hub.tokenizers.Tokenizer):
        digest.update(tokenizer.definition().encode())
        return digest.hexdigest()
    options = json.dumps(tokenizer.get_config(), sort_keys=True, default=str)
    digest.update(options.encode())
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_assets(folder)
        for path in sorted(Path(folder).iterdir()):
            digest.update(path.read_bytes())
    return digest.hexdigest()


@contextlib.contextmanager
def _lock(folder):
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        file = folder.with_suffix(".lock").open("w")
    except OSError as error:
        raise ConfigError(
            f"Cannot write to --cache_dir={folder.parent}: {error.strerror}. "
            "Give a folder that you may write to."
        ) from error
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _write(folder, chunks):
    """Writes a cache at one stroke; returns what `_read_contents` does."""
    # Who holds the lock is alone: these are of processes that were killed.
    for left in folder.parent.glob(f"{folder.name}.*/"):
        shutil.rmtree(left)
    new = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
    try:
        columns = {}
        with contextlib.ExitStack() as stack:
            for encoded in chunks:
                for name, array in _columns(encoded).items():
                    if name not in columns:
                        file = stack.enter_context((new / name).open("wb"))
                        columns[name] = _Column(file, array.dtype.str)
                    columns[name].append(array)
        contents = {name: c.describe() for name, c in columns.items()}
        (new / _CONTENTS).write_text(json.dumps(contents))
        shutil.rmtree(folder, ignore_errors=True)
        new.rename(folder)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    return contents


class _Column:
    """Arrays that are written to a file one after the other."""

    def __init__(self, file, dtype):
        self.file, self.dtype = file, dtype
        self.tail, self.rows = [], 0
        self.digest = hashlib.sha256()

    def append(self, array):
        data = np.ascontiguousarray(array, self.dtype).tobytes()
        self.file.write(data)
        self.digest.update(data)
        self.rows += len(array)
        self.tail = list(array.shape[1:])

    def describe(self):
        """Returns what is to be known of the file to read it."""
        return {
            "dtype": self.dtype,
            "shape": [self.rows, *self.tail],
            "sha256": self.digest.hexdigest(),
        }


def _columns(encoded):
    """Returns arrays by name; `lengths` has the tokens of each sequence."""
    sequences, segments = encoded.token_ids, encoded.segment_ids
    columns = {}
    if not sequences:
        return columns
    if isinstance(sequences[0], list):
        columns["choices"] = np.array([len(row) for row in sequences], "int32")
        sequences = [one for row in sequences for one in row]
        segments = segments and [one for row in segments for one in row]
    columns["lengths"] = np.array([len(row) for row in sequences], "int32")
    columns["token_ids"] = np.concatenate(sequences).astype("int32")
    if segments is not None:
        columns["segment_ids"] = np.concatenate(segments).astype("int32")
    if isinstance(encoded.targets, list):
        columns["targets"] = np.concatenate(encoded.targets).astype("int32")
    elif encoded.targets is not None:
        columns["targets"] = encoded.targets
    if encoded.counts is not None:
        columns["counts"] = encoded.counts
    return columns


def _read_contents(folder):
    """Returns the dict of a whole cache's columns, or `None`."""
    if not (folder / _CONTENTS).exists():
        return None
    try:
        columns = json.loads((folder / _CONTENTS).read_text())
        for name, column in columns.items():
            with (folder / name).open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
            if found != column["sha256"]:
                raise UserError(f"{name} has changed since it was written")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        _LOGGER.warning("Making %s again, it is damaged: %s", folder, error)
        return None
    return columns


def _examples(folder, columns, few):
    """Returns the `Examples` of a cache.

    Args:
        folder: Its folder.
        columns: See `_read_contents`.
        few: `Examples` of some of the rows, for all that is of one kind.
    """

    def array(name):
        column = columns[name]
        path, shape = folder / name, column["shape"]
        return np.fromfile(path, column["dtype"]).reshape(shape)

    splits = [_splits(array("lengths"))]
    if "choices" in columns:
        splits.insert(0, _splits(array("choices")))
    tokens = {
        name: MappedTokens(
            str(folder / name), columns[name]["shape"][0], splits
        )
        for name in ("token_ids", "segment_ids", "targets")
        if isinstance(getattr(few, name), tf.RaggedTensor)
    }
    arrays = {
        name: array(name)
        for name in ("targets", "counts")
        if isinstance(getattr(few, name), np.ndarray)
    }
    tensors = {name: mapped.tensor() for name, mapped in tokens.items()}
    return dataclasses.replace(few, **tensors, **arrays, mapped=tokens)


def _splits(lengths):
    return np.concatenate([[0], np.cumsum(lengths, dtype="int64")])


@dataclasses.dataclass(frozen=True)
class MappedTokens:
    """A ragged int32 tensor whose values are a file.

    Attributes:
        path: The file: the values one after the other.
        size: How many there are.
        splits: List of int64 arrays, from the outermost, where rows begin.
    """

    path: str
    size: int
    splits: list

    def tensor(self):
        """Returns it, made eagerly or in the graph that is being traced."""
        with tf.device("CPU"):
            values = tf.raw_ops.ImmutableConst(
                dtype=tf.int32, shape=[self.size], memory_region_name=self.path
            )
        return tf.RaggedTensor.from_nested_row_splits(
            values, self.splits, validate=False
        )
