"""Looks for files that break a reader, guided by the code that they reach.

    pip install atheris==3.0.0
    python -m tests.fuzz.fuzz_files <empty folder> -max_total_time=600

What it finds is printed and kept as `crash-...`, `timeout-...` or `oom-...` in
the current folder; the first byte chooses the reader. The same command with
such a file instead of the folder shows it again. All arguments are libFuzzer's.
"""

import logging
from pathlib import Path
import sys
import tempfile

import atheris

with atheris.instrument_imports(include=["tf_adapters", "yaml", "json"]):
    from tests.fuzz import fragments
    from tests.fuzz import targets
    from tests.fuzz import templates

_NAMES = sorted(targets.TARGETS)
_LONGEST_WORD = 64


def _write_dictionary(path):
    """Writes the fragments that libFuzzer has room for, in its format."""
    words = {word for words in fragments.FRAGMENTS.values() for word in words}
    path.write_text(
        "".join(
            f'"{"".join(f"{chr(92)}x{byte:02x}" for byte in word)}"\n'
            for word in sorted(words)
            if len(word) <= _LONGEST_WORD
        )
    )


def _write_seeds(folder):
    """Writes each template with a value in it, if the folder is empty."""
    if any(folder.iterdir()):
        return
    for number, name in enumerate(_NAMES):
        for place, template in enumerate(templates.TEMPLATES[name]):
            content = bytes([number]) + template.replace(b"@", b"1")
            (folder / f"{name}-{place}").write_bytes(content)


def main():
    logging.disable()  # Each damaged checkpoint is a warning.
    with tempfile.TemporaryDirectory() as scratch:

        def read(data):
            name = _NAMES[data[0] % len(_NAMES)] if data else "txt"
            targets.TARGETS[name](scratch, data[1:])

        dictionary = Path(scratch) / "fuzz.dict"
        _write_dictionary(dictionary)
        if len(sys.argv) > 1 and Path(sys.argv[1]).is_dir():
            _write_seeds(Path(sys.argv[1]))
        options = [f"-dict={dictionary}", "-timeout=20", "-max_len=2000"]
        atheris.Setup([*sys.argv, *options], read)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
