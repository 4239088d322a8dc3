"""Damages a file within its format: what a flipped bit seldom reaches."""

import functools
import gzip
import io
import json
import pickle
import zipfile

import yaml

from tests.fuzz import byte_mutations
from tests.fuzz import value_mutations


def _json(content, chance):
    value = value_mutations.mutate(json.loads(content), chance)
    return value_mutations.to_json(value, chance)


def _json_lines(content, chance):
    lines = content.split(b"\n")
    number = chance.choice([i for i, line in enumerate(lines) if line.strip()])
    lines[number] = _json(lines[number], chance)
    return b"\n".join(lines)


# A fuzzer damages the same file thousands of times; `mutate` copies the value.
_parse_yaml = functools.lru_cache(maxsize=10)(yaml.safe_load)


def _yaml(content, chance):
    value = value_mutations.mutate(_parse_yaml(content), chance)
    as_json = value_mutations.to_json(value, chance)  # JSON is YAML.
    if chance.random() < 0.5 or len(as_json) > 10_000:
        return as_json
    try:
        text = yaml.safe_dump(value, allow_unicode=True, sort_keys=False)
    except RecursionError:
        return as_json
    return text.encode("utf-8", "surrogatepass")


def _safetensors(content, chance):
    size = int.from_bytes(content[:8], "little")
    header = _json(content[8 : 8 + size], chance)
    return len(header).to_bytes(8, "little") + header + content[8 + size :]


_CALLS = pickle.dumps(print)


def _zip(content, chance):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        parts = [(name, archive.read(name)) for name in archive.namelist()]
    number = chance.randrange(len(parts))
    name, part = parts[number]
    choices = {
        "bytes": [(name, byte_mutations.mutate(part, chance))],
        "none": [],
        "twice": [(name, part), (name, part)],
        "climb": [(f"../../{name}", part)],
        "code": [(name, _CALLS)],
        "bomb": [(name, bytes(1 << 24))],
    }
    weights = (20, 1, 1, 1, 1, 1)
    (choice,) = chance.choices(list(choices), weights)
    parts[number : number + 1] = choices[choice]
    kind = zipfile.ZIP_DEFLATED if choice == "bomb" else zipfile.ZIP_STORED
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", kind) as archive:
        for name, part in parts:
            archive.writestr(zipfile.ZipInfo(name), part, kind)
    return file.getvalue()


# 128 MiB of zeros, in members that follow one another.
_BOMB = gzip.compress(bytes(1 << 20)) * 128


def _gzip(content, chance):
    inner = gzip.decompress(content)
    if chance.random() < 0.02:
        return _BOMB
    mutate = _json if chance.random() < 0.7 else byte_mutations.mutate
    return gzip.compress(mutate(inner, chance), 1)


_BY_ENDING = {
    ".json": _json,
    ".jsonl": _json_lines,
    ".yaml": _yaml,
    ".safetensors": _safetensors,
    ".bin": _zip,
    ".gz": _gzip,
}


def mutate(name, content, chance):
    """Returns the damaged content of a file.

    Args:
        name: Name of the file. Its ending says the format.
        content: Bytes.
        chance: `random.Random`.
    """
    ending = name[name.rfind(".") :]
    if ending not in _BY_ENDING or chance.random() < 0.35:
        return byte_mutations.mutate(content, chance)
    return _BY_ENDING[ending](content, chance)


def _spaces_in_json(content):
    return json.dumps(json.loads(content), indent=3).encode() + b"\n"


def _spaces_in_header(content):
    size = int.from_bytes(content[:8], "little")
    header = content[8 : 8 + size] + b" " * 8
    return len(header).to_bytes(8, "little") + header + content[8 + size :]


_HARMLESS = {
    ".json": _spaces_in_json,
    ".yaml": lambda content: b"# A comment.\n" + content + b"\n# The end.\n",
    ".jsonl": lambda content: content.replace(b"\n", b"\r\n") + b"\n",
    ".csv": lambda content: b"\xef\xbb\xbf" + content.replace(b"\n", b"\r\n"),
    ".tsv": lambda content: b"\xef\xbb\xbf" + content.replace(b"\n", b"\r\n"),
    ".txt": lambda content: content.replace(b"\n", b"\r\n"),
    ".conll": lambda content: content.replace(b"\n", b"\r\n"),
    ".conllu": lambda content: b"# text\n" + content,
    ".safetensors": _spaces_in_header,
}


def same_meaning(name, content):
    """Returns other content with the same meaning, or `None`."""
    change = _HARMLESS.get(name[name.rfind(".") :])
    return None if change is None else change(content)
