"""How many files of the library an adapter folder and a run's settings pass.

    python benchmarks/count_stays.py
    python benchmarks/count_stays.py --checkout=<folder>
    python benchmarks/count_stays.py --show

A *stay* is an unbroken run of uses of a value in one file: a reader who follows
the value opens that file once for it. A use is a call of one of the library's
functions that is given the value, or the return from such a call to the caller.
A *return* is a stay in a file that had one before. `--checkout` counts another
checkout of this repository, `--show` names the files.

Of an adapter folder that is loaded, a function is given the folder's path or a
path in it, a value of its JSON, or an object or list that has one of these.
`JSON` is how often a JSON file of the folder is parsed. The encoder is loaded
before the count.

Of the settings that `train_experiment` gets, for a run of one step, a function
is given the `Config`, a section of it such as `config.train`, or a list, a dict
or an object of the library that has one of these.
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
    """Follows a value through the files of a package; a profile function.

    Args:
        package: Path of the package.
        value: `FolderValue` or `SettingsValue`.
    """

    def __init__(self, package, value):
        self.package = f"{package}{os.sep}"
        self.value = value
        self.files = []
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
        self.value.returned(code.co_name, value)
        if self._given.pop(id(frame), False):
            self._return_to(frame.f_back)

    def _return_to(self, frame):
        name = frame.f_code.co_filename
        if name.startswith(self.package):
            self.files.append(name)

    def _is_given(self, frame):
        code = frame.f_code
        count = code.co_argcount + code.co_kwonlyargcount
        count += bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
        names = code.co_varnames[:count]
        return any(self.value.is_in(frame.f_locals.get(n)) for n in names)

    def stays(self):
        """Returns the files in the order of the stays."""
        return [
            name
            for i, name in enumerate(self.files)
            if i == 0 or name != self.files[i - 1]
        ]


class FolderValue:
    """The path of an adapter folder and all that is parsed from its JSON.

    Args:
        folder: Path of the folder.
    """

    def __init__(self, folder):
        self.folder = str(folder)
        self.parsed = 0
        # The parsed values themselves, so that no other gets one's id.
        self._of_json = {}

    def returned(self, function, value):
        """Takes the name of a function of the library and what it returned."""
        if function == PARSER:
            self.parsed += 1
            self._remember(value)

    def _remember(self, value):
        if isinstance(value, dict | list):
            self._of_json[id(value)] = value
            items = value.values() if isinstance(value, dict) else value
            for item in items:
                self._remember(item)

    def is_in(self, value):
        """Returns whether an argument is or has the folder."""
        if isinstance(value, str | Path):
            return str(value).startswith(self.folder)
        if id(value) in self._of_json:
            return True
        if isinstance(value, list | tuple):
            return any(self.is_in(item) for item in value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return any(map(self.is_in, vars(value).values()))
        return False


class SettingsValue:
    """A run's settings and their sections.

    Args:
        config: `Config`.
    """

    def __init__(self, config):
        package = type(config).__module__.rpartition(".")[0]
        sections = {type(value) for value in vars(config).values()}
        own = {cls for cls in sections if cls.__module__.startswith(package)}
        self._classes = (type(config), *own)

    def returned(self, function, value):
        """Has no effect: what functions return is known by its class."""

    def is_in(self, value):
        """Returns whether an argument is or has settings."""
        if isinstance(value, list | tuple):
            return any(self.is_in(item) for item in value)
        if isinstance(value, dict):
            return any(map(self.is_in, value.values()))
        if isinstance(value, self._classes):
            return True
        held = getattr(value, "__dict__", {})
        is_ours = type(value).__module__.startswith("tf_adapters")
        return is_ours and any(
            isinstance(v, self._classes) for v in held.values()
        )


def follow(package, value, function):
    """Returns the files that a value stays in while a function runs, in order.

    Args:
        package: Path of `tf_adapters`.
        value: `FolderValue` or `SettingsValue`.
        function: Function without arguments.
    """
    follower = Follower(package, value)
    sys.setprofile(follower)
    try:
        function()
    finally:
        sys.setprofile(None)
    return follower.stays()


def count(package, folder, load):
    """Returns stays, returns, files and parsed JSON files of one loading.

    Args:
        package: Path of `tf_adapters`.
        folder: Path of an adapter folder.
        load: Function that loads the folder.
    """
    value = FolderValue(folder)
    stays = follow(package, value, lambda: load(folder))
    return (*numbers(stays), value.parsed)


def numbers(stays):
    """Returns the numbers of stays, of returns among them, and of files."""
    files = len(set(stays))
    return len(stays), len(stays) - files, files


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


def follow_settings(package, folder, encoder="minilm"):
    """Returns the files that the settings of a small run stay in.

    Args:
        package: Path of `tf_adapters`.
        folder: Path of the run folder.
        encoder: Name or folder of the encoder. Default: `"minilm"`.
    """
    from tf_adapters.config import resolve
    from tf_adapters.runs import training_run

    config = resolve.resolve_config(
        {
            "task": "demo_sentiment",
            "encoder": encoder,
            "data": {"max_train_examples": 32, "max_length": 32},
            # A checkpoint on a slow machine would add stays.
            "train": {"epochs": 1, "batch_size": 32, "checkpoint_seconds": 1e6},
        }
    )
    data = _data_of(config)
    return follow(
        package,
        SettingsValue(config),
        lambda: training_run.train_experiment(config, *data, folder),
    )


def _data_of(config):
    """Returns the arguments of `train_experiment` that are a run's data."""
    try:
        from tf_adapters.runs import task_data
    except ImportError:  # An earlier checkout.
        from tf_adapters.data.rows import splits

        task = splits.get_task(config)
        return task, splits.load_rows(config, task)
    return (task_data.load_task_data(config),)


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkout", type=Path, default=ROOT)
    parser.add_argument("--show", action="store_true", help="name the files")
    options = parser.parse_args()
    checkout = options.checkout.absolute()
    sys.path.insert(0, str(checkout))
    import tf_adapters

    encoder, tokenizer = tf_adapters.load_encoder("minilm")

    def load(folder):
        tf_adapters.load(folder, encoder, tokenizer)

    package, found = checkout / "tf_adapters", {}
    with tempfile.TemporaryDirectory() as scratch:
        for form in FORMATS:
            folder = Path(scratch).resolve() / form
            _save(folder, form, encoder)
            # Files are imported where they are used first.
            load(folder)
            found[form] = count(package, folder, load)
        stays = follow_settings(package, Path(scratch) / "run")
    if options.show:
        print(*(Path(name).relative_to(package) for name in stays), sep="\n")
    print(f"{'':12}{'stays':>8}{'returns':>8}{'files':>8}{'JSON':>8}")
    found["settings"] = numbers(stays)
    for name, values in found.items():
        print(f"{name:12}" + "".join(f"{n:8}" for n in values))


if __name__ == "__main__":
    main()
