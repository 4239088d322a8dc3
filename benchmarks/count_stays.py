"""How many files of the library an adapter folder passes through as it loads.

    python benchmarks/count_stays.py
    python benchmarks/count_stays.py --checkout=<folder>

A *stay* is an unbroken run of uses of the folder in one file: a reader who
follows the folder opens that file once for it. A use is a call of one of the
library's functions that is given the folder, or the return from such a call to
the function that made it. Given the folder is a function with an argument that
is the folder's path or a path in it, a value of its JSON, or an object or list
that has one of these. A *return* is a stay in a file that had one before.

`JSON` is how often a JSON file of the folder is parsed. The encoder is loaded
before the count. `--checkout` counts another checkout of this repository.
"""

import argparse
import dataclasses
import os
from pathlib import Path
import sys
import tempfile

ROOT = Path(__file__).parents[1]
FORMATS = ("tf_adapters", "peft", "adapterhub")
# The parser of JSON is a file that all of the folder's JSON passes through.
PARSER = "parse_json"


class Follower:
    """Follows a folder through the files of a package; a profile function.

    Args:
        package: Path of the package.
        folder: Path of the folder.
    """

    def __init__(self, package, folder):
        self.package = f"{package}{os.sep}"
        self.folder = str(folder)
        self.files = []
        self.parsed = 0
        # The parsed values themselves, so that no other gets one's id.
        self._of_json = {}
        self._given = {}

    def __call__(self, frame, event, value):
        """Takes an event of `sys.setprofile`."""
        if event not in ("call", "return"):
            return
        code = frame.f_code
        if not code.co_filename.startswith(self.package):
            return
        if event == "call":
            self._given[id(frame)] = self._is_given(frame)
            if self._given[id(frame)]:
                self.files.append(code.co_filename)
            return
        if code.co_name == PARSER:
            self.parsed += 1
            self._remember(value)
        if self._given.pop(id(frame), False):
            self._return_to(frame.f_back)

    def _return_to(self, frame):
        name = frame.f_code.co_filename
        if name.startswith(self.package):
            self.files.append(name)

    def _remember(self, value):
        if isinstance(value, dict | list):
            self._of_json[id(value)] = value
            items = value.values() if isinstance(value, dict) else value
            for item in items:
                self._remember(item)

    def _is_given(self, frame):
        code = frame.f_code
        count = code.co_argcount + code.co_kwonlyargcount
        count += bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
        names = code.co_varnames[:count]
        return any(self._is_of_folder(frame.f_locals.get(n)) for n in names)

    def _is_of_folder(self, value):
        if isinstance(value, str | Path):
            return str(value).startswith(self.folder)
        if id(value) in self._of_json:
            return True
        if isinstance(value, list | tuple):
            return any(self._is_of_folder(item) for item in value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return any(map(self._is_of_folder, vars(value).values()))
        return False

    def stays(self):
        """Returns the files in the order of the stays."""
        return [
            name
            for i, name in enumerate(self.files)
            if i == 0 or name != self.files[i - 1]
        ]


def count(package, folder, load):
    """Returns stays, returns, files and parsed JSON files of one loading.

    Args:
        package: Path of `tf_adapters`.
        folder: Path of an adapter folder.
        load: Function that loads the folder.
    """
    follower = Follower(package, folder)
    sys.setprofile(follower)
    try:
        load(folder)
    finally:
        sys.setprofile(None)
    stays = follower.stays()
    files = len(set(stays))
    return len(stays), len(stays) - files, files, follower.parsed


def _save(folder, form, encoder):
    import tf_adapters
    from tf_adapters import heads
    from tf_adapters import methods

    # The one head that all three formats have.
    head = heads.Classification(
        labels=("no", "yes"), reads="pooled_output", hidden_layer="none"
    )
    model = tf_adapters.adapt(encoder, methods.LoRA(), head)
    tf_adapters.save_adapter(model, folder, format=form)


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkout", type=Path, default=ROOT)
    checkout = parser.parse_args().checkout.absolute()
    sys.path.insert(0, str(checkout))
    import tf_adapters

    encoder, tokenizer = tf_adapters.load_encoder("minilm")

    def load(folder):
        tf_adapters.load(folder, encoder, tokenizer)

    print(f"{'':12}{'stays':>8}{'returns':>8}{'files':>8}{'JSON':>8}")
    with tempfile.TemporaryDirectory() as scratch:
        for form in FORMATS:
            folder = Path(scratch).resolve() / form
            _save(folder, form, encoder)
            # Files are imported where they are used first.
            load(folder)
            numbers = count(checkout / "tf_adapters", folder, load)
            print(f"{form:12}" + "".join(f"{n:8}" for n in numbers))


if __name__ == "__main__":
    main()
