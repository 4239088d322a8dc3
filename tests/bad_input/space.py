"""Runs commands on bad input, for the cases of the table."""

import contextlib
import dataclasses
import json
from pathlib import Path
import resource
import shutil

from tests import commands

# The words of its vocabulary are in tests/fixtures/tiny_encoders.py.
SETTINGS = {
    "task": "sst2",
    "encoder": commands.ENCODER,
    "method": "head_only",
    "data": {"max_length": 24},
    "train": {"epochs": 1, "batch_size": 8},
}
# Of tasks in many languages.
_FOLDERS = {"ud_pos": "ud/en_ewt", "wikiann": "panx/en"}
ROWS = [
    {
        "sentence": f"{'good' if place % 2 else 'bad'} {place}",
        "label": place % 2,
    }
    for place in range(16)
]
MANY_WORDS = "good bad the " * 33_333 + "end"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The exit status and the output of a command."""

    status: int
    said: str


class Space:
    """A folder and helpers for one case.

    Args:
        folder: Empty folder.
        run: Folder of a finished run, which must not be changed. capsys,
        caplog: Fixtures of pytest.
    """

    def __init__(self, folder, run, capsys, caplog):
        self.folder = folder
        self.run = run
        self.capsys = capsys
        self.caplog = caplog

    def command(self, model_dir, settings=None, **options):
        """Returns the `Outcome` of a command."""
        self.capsys.readouterr()
        self.caplog.clear()
        status = commands.run(model_dir, settings, **options)
        found = self.capsys.readouterr()
        logged = [record.getMessage() for record in self.caplog.records]
        return Outcome(status, "\n".join([found.err, *logged]))

    def data(self, task="sst2", **files):
        """Writes data, such as `train__jsonl="..."`, and returns the folder."""
        root = self.folder / "data"
        folder = root / _FOLDERS.get(task, task)
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            path = folder / name.replace("__", ".")
            if isinstance(content, list):
                content = lines(*content)
            if isinstance(content, str):
                content = content.encode()
            # Written once, because a full disk would make the test fail.
            if not path.exists() or path.read_bytes() != content:
                path.write_bytes(content)
        return str(root)

    def train(self, task="sst2", settings=None, **files):
        """Trains on valid data, except for the given files."""
        if not any(name.startswith("train__") for name in files):
            files["train__jsonl"] = ROWS
        files.setdefault("dev__jsonl", ROWS[:2])
        layer = {**SETTINGS, "task": task, **(settings or {})}
        folder = self.data(task, **files)
        layer["data"] = {**SETTINGS["data"], "data_dir": folder}
        return self.command(self.folder / "run", layer, mode="train")

    def train_with(self, *overrides, settings=None, **options):
        """Trains on valid data with invalid settings."""
        layer = {**SETTINGS, **(settings or {})}
        layer["data"] = {
            **SETTINGS["data"],
            "data_dir": self.data(train__jsonl=ROWS, dev__jsonl=ROWS[:2]),
        }
        folder = options.pop("model_dir", self.folder / "run")
        return self.command(
            folder, layer, params_override=list(overrides), **options
        )

    def evaluate(self, **files):
        """Evaluates the finished run on data."""
        layer = {"data": {"data_dir": self.data(**files)}}
        return self.command(self.run, layer, mode="eval")

    def evaluate_after(self, change, **settings):
        """Evaluates a copy of the finished run after `change(its folder)`."""
        copy = self.copy_run()
        change(copy)
        return self.command(copy, settings, mode="eval")

    def copy_run(self):
        """Returns the folder of a copy of the finished run."""
        return shutil.copytree(self.run, self.folder / "copy")

    def copy_encoder(self, change):
        """Returns the folder of a changed copy of the encoder."""
        folder = shutil.copytree(commands.ENCODER, self.folder / "encoder")
        change(folder)
        return folder

    def train_on(self, change):
        """Trains on a copy of the encoder after `change(its folder)`."""
        encoder = str(self.copy_encoder(change))
        return self.train_with(settings={"encoder": encoder})

    def predict(self, *texts, name="in.jsonl", content=None):
        """Returns the outcome, and the probabilities of each text."""
        path, output = self.folder / name, self.folder / "out.jsonl"
        if content is None:
            content = lines(*({"sentence": text} for text in texts))
        path.write_bytes(
            content if isinstance(content, bytes) else content.encode()
        )
        options = {"input": str(path), "output": str(output)}
        outcome = self.command(self.run, mode="predict", **options)
        found = commands.read_rows(output) if output.exists() else []
        return outcome, [list(row["probabilities"].values()) for row in found]

    @contextlib.contextmanager
    def largest_file(self, size):
        """Makes writes fail that would make a file larger than `size`."""
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def lines(*rows):
    """Returns rows as JSON lines."""
    return "".join(json.dumps(row) + "\n" for row in rows)


def path_of(folder, name):
    """Creates the folders of a path and returns it."""
    path = Path(folder) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
