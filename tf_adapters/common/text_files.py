"""JSON and YAML read so that any text gives a value or a `ValueError`.

The libraries have many more ways to fail: recursion, numbers of thousands of
digits, tags that make dates out of anything, aliases that unfold to billions.
"""

import itertools
import json
from pathlib import Path

import yaml

from tf_adapters.common import own_files
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut

# Files that are read whole are far smaller.
_LARGEST_FILE = 1 << 28
# A file of settings has a few hundred; aliases can unfold to billions.
_MAX_YAML_NODES = 100_000
# PyYAML looks for 1,024 characters behind each bracket that is open.
_MAX_YAML_DEPTH = 100


def read_file(path, largest=_LARGEST_FILE):
    """Returns the bytes of a file.

    Raises:
        UserError: Why it cannot be read, without its path: it is a folder, a
            pipe, larger than `largest` bytes, or not to be read.
    """
    path = Path(path)
    try:
        if path.exists() and not path.is_file():
            # To open a pipe may wait without end.
            raise UserError("it is no file")
        if path.stat().st_size > largest:
            raise UserError(f"it is larger than {largest:,} bytes")
        return path.read_bytes()
    except OSError as error:
        raise UserError(error.strerror) from error


def read_json(path):
    """Returns what a JSON file says.

    Raises:
        UserError: See `read_file` and `parse_json`.
    """
    try:
        return parse_json(read_file(path).decode())
    except UnicodeDecodeError as error:
        raise UserError(f"not UTF-8 at byte {error.start + 1}") from error


def parse_json(text):
    """Returns what JSON says.

    Raises:
        UserError: If it is no JSON, is nested too deeply, or has text that
            is no Unicode; it says where or why.
    """
    try:
        value = json.loads(text)
        if "\\u" in text:
            # Half of a pair of surrogates is JSON, but no tokenizer or file
            # takes it.
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, " if "\n" in text else ""
        raise UserError(
            f"not JSON: {error.msg} at {where}column {error.colno}"
        ) from error
    except UnicodeEncodeError as error:
        half = ascii(error.object[error.start])
        raise UserError(
            f"not JSON of Unicode text: {half} is half a character"
        ) from error
    except RecursionError as error:
        raise UserError("not JSON that can be read: nested too deeply") from (
            error
        )
    except ValueError as error:
        raise UserError(f"not JSON that can be read: {error}") from error
    return value


def parse_yaml(text):
    """Returns what YAML says.

    Raises:
        UserError: If it is no YAML, or of values that cannot be read.
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
    except RecursionError as error:
        raise UserError("not YAML that can be read: nested too deeply") from (
            error
        )
    # What PyYAML's constructors raise for `!!int ""`, `!!timestamp x`, ...
    except (ValueError, TypeError, AttributeError, LookupError) as error:
        raise UserError(f"not YAML that can be read: {cut(error)}") from error
    finally:
        if loader is not None:
            loader.dispose()


def _cut(error):
    """Returns an error of PyYAML's with long names and tags in it cut."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem:
        error.problem = cut(error.problem)
    return error


def _check_depth(text):
    depths = itertools.accumulate(
        (c in "[{") - (c in "]}") for c in text if c in "[]{}"
    )
    if max(depths, default=0) > _MAX_YAML_DEPTH:
        raise RecursionError


def _unfolded_size(node, sizes, depth):
    """Returns how many nodes there are when every alias is a copy.

    Raises:
        UserError: If there are too many, or a node is a part of itself.
        RecursionError: If it is nested deeper than brackets may be, whatever
            depth of calls Python allows in this process.
    """
    if depth > _MAX_YAML_DEPTH:
        raise RecursionError
    if id(node) in sizes:
        if sizes[id(node)] is None:
            raise UserError("an alias stands for what it is a part of")
        return sizes[id(node)]
    sizes[id(node)] = None
    parts = node.value if isinstance(node, yaml.CollectionNode) else []
    if isinstance(node, yaml.MappingNode):
        parts = [part for pair in parts for part in pair]
    size = 1 + sum(_unfolded_size(part, sizes, depth + 1) for part in parts)
    if size > _MAX_YAML_NODES:
        raise UserError(f"more than {_MAX_YAML_NODES:,} values")
    sizes[id(node)] = size
    return size


def replace_text(path, text):
    """Writes a small text file whole, see `own_files.replace_file`."""
    own_files.replace_file(path, text.encode())
