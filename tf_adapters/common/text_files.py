"""Safe reading of JSON and YAML: any text gives a value or a `ValueError`.

The underlying libraries can fail in many other ways: through recursion, numbers
with thousands of digits, tags that convert any value to a date, or aliases that
expand to billions of values.
"""

import hashlib
import itertools
import json
import os
from pathlib import Path
from typing import Any

import yaml

from tf_adapters.common import own_files
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut

# In bytes. Files that are read as a whole are much smaller.
_LARGEST_FILE = 1 << 28
# A settings file has a few hundred nodes; aliases can expand to billions.
_MAX_YAML_NODES = 100_000
# PyYAML looks ahead 1,024 characters for each open bracket.
_MAX_YAML_DEPTH = 100


def read_file(
    path: str | os.PathLike[str], largest: int = _LARGEST_FILE
) -> bytes:
    """Returns the content of a file as bytes.

    Args:
        path: Path of the file.
        largest: Maximum size in bytes. Defaults to 256 MiB.

    Raises:
        UserError: If the path is a folder or a pipe, or if the file is too
            large or cannot be read. The message does not include the path.
    """
    try:
        check_file(path, largest)
        return Path(path).read_bytes()
    except OSError as error:
        raise UserError(error.strerror) from error


def check_file(
    path: str | os.PathLike[str], largest: int = _LARGEST_FILE
) -> None:
    """Checks that a path is a file, if it exists, and is not too large.

    Opening a pipe can block forever, and a device can have no end.

    Args:
        path: Path of the file.
        largest: Maximum size in bytes. Defaults to 256 MiB.

    Raises:
        UserError: If the path is a folder, a pipe or a device, or if the file
            is too large. The message does not include the path.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        raise UserError("it is not a file")
    if path.exists() and path.stat().st_size > largest:
        raise UserError(f"it is larger than {largest:,} bytes")


def read_text(path: str | os.PathLike[str]) -> str:
    """Returns the content of a text file in UTF-8.

    Raises:
        UserError: See `read_file`; also if the content is not UTF-8.
    """
    try:
        return read_file(path).decode()
    except UnicodeDecodeError as error:
        raise UserError(f"not UTF-8 at byte {error.start + 1}") from error


def read_json(path: str | Path) -> Any:
    """Returns the value in a JSON file.

    Raises:
        UserError: See `read_text` and `parse_json`.
    """
    return parse_json(read_text(path))


def parse_json(text: str) -> Any:
    """Parses a JSON string and returns its value.

    Raises:
        UserError: If the text is not JSON, is nested too deeply, or has a
            string that is not valid Unicode. The message says where or why.
    """
    try:
        value = json.loads(text)
        if "\\u" in text:
            # JSON allows half of a surrogate pair, but tokenizers and files do
            # not.
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, " if "\n" in text else ""
        raise UserError(
            f"not JSON: {error.msg} at {where}column {error.colno}"
        ) from error
    except UnicodeEncodeError as error:
        raise UserError(f"not JSON of Unicode text: {_half(error)}") from error
    except RecursionError as error:
        raise UserError("not JSON that can be read: nested too deeply") from (
            error
        )
    except ValueError as error:
        raise UserError(f"not JSON that can be read: {error}") from error
    return value


def hash_of_json(value: Any) -> str:
    """Returns a hash of a value that can be stored as JSON, 64 hex digits.

    The hash is computed from JSON text. So it is the same before the value is
    written and after it is read back.
    """
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def is_unicode(text: str) -> bool:
    """Returns whether a string has no half of a surrogate pair."""
    # Much faster than a look at each character.
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_unicode(text: str) -> None:
    r"""Raises a `UserError` if a string has half of a surrogate pair.

    Python's strings can hold one, such as `"\ud800"`, but tokenizers and files
    do not.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UserError(
            f"not Unicode text: {_half(error)}. Remove it: "
            '`text.encode("utf-8", "ignore").decode()`'
        ) from error


def _half(error: UnicodeEncodeError) -> str:
    """Describes the half of a surrogate pair that could not be encoded."""
    return f"{ascii(error.object[error.start])} is half a character"


def parse_yaml(text: str) -> Any:
    """Parses a YAML string and returns its value.

    Raises:
        UserError: If the text is not YAML, is nested too deeply or too large,
            or has values that cannot be read or are not valid Unicode.
    """
    loader = None
    try:
        _check_depth(text)
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        _unfolded_size(node, {}, depth=0)
        return None if node is None else loader.construct_document(node)
    except yaml.YAMLError as error:
        raise UserError(f"not valid YAML: {_cut(error)}") from error
    except UnicodeEncodeError as error:
        raise UserError(f"not YAML of Unicode text: {_half(error)}") from error
    except RecursionError as error:
        raise UserError("not YAML that can be read: nested too deeply") from (
            error
        )
    # PyYAML's constructors raise these for `!!int ""`, `!!timestamp x`, ...
    except (ValueError, TypeError, AttributeError, LookupError) as error:
        raise UserError(f"not YAML that can be read: {cut(error)}") from error
    finally:
        if loader is not None:
            loader.dispose()


def _cut(error: yaml.YAMLError) -> yaml.YAMLError:
    """Cuts long names and tags in the message of a PyYAML error."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem:
        error.problem = cut(error.problem)
    return error


def _check_depth(text: str) -> None:
    depths = itertools.accumulate(
        (c in "[{") - (c in "]}") for c in text if c in "[]{}"
    )
    if max(depths, default=0) > _MAX_YAML_DEPTH:
        raise RecursionError


def _unfolded_size(
    node: yaml.Node | None, sizes: dict[int, int | None], depth: int
) -> int:
    """Counts a YAML node and all nodes within it, with aliases expanded.

    Also encodes each string, because YAML, too, allows half a surrogate pair.

    Args:
        node: PyYAML node.
        sizes: Dict from the id of each visited node to its count, or to `None`
            while its children are being counted. It is updated.
        depth: Depth of the node in the document.

    Raises:
        UserError: If there are too many nodes, or a node contains itself.
        UnicodeEncodeError: If a string is not valid Unicode.
        RecursionError: If nodes are nested more deeply than `_MAX_YAML_DEPTH`,
            regardless of Python's recursion limit.
    """
    if depth > _MAX_YAML_DEPTH:
        raise RecursionError
    if id(node) in sizes:
        size = sizes[id(node)]
        if size is None:
            raise UserError("an alias refers to a value that contains it")
        return size
    if isinstance(node, yaml.ScalarNode):
        node.value.encode()
    sizes[id(node)] = None
    parts = node.value if isinstance(node, yaml.CollectionNode) else []
    if isinstance(node, yaml.MappingNode):
        _check_keys(node)
        parts = [part for pair in parts for part in pair]
    size = 1 + sum(_unfolded_size(part, sizes, depth + 1) for part in parts)
    if size > _MAX_YAML_NODES:
        raise UserError(f"more than {_MAX_YAML_NODES:,} values")
    sizes[id(node)] = size
    return size


def _check_keys(node: yaml.MappingNode) -> None:
    """Raises a `UserError` if a mapping has a key twice.

    PyYAML would drop the first value without a word.
    """
    seen: set[tuple[str, str]] = set()
    for key, _ in node.value:
        # "<<" merges other mappings, so it may be there several times.
        if not isinstance(key, yaml.ScalarNode) or key.value == "<<":
            continue
        if (key.tag, key.value) in seen:
            raise UserError(
                f"the key `{cut(key.value)}` is given twice, the second time "
                f"in line {key.start_mark.line + 1}. Join the two parts"
            )
        seen.add((key.tag, key.value))


def replace_text(path: str | Path, text: str) -> None:
    """Writes a small text file atomically; see `own_files.replace_file`."""
    own_files.replace_file(path, text.encode())
