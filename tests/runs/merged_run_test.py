"""Tests the run folder of `tf-adapters merge`, and the guide's commands."""

import json
from pathlib import Path
import re
import shlex

import numpy as np
import pytest
from safetensors.numpy import load_file

from tests import commands
from tests.cli import subcommands
import tf_adapters
from tf_adapters.cli import flags as cli_flags
from tf_adapters.encoders import load
from tf_adapters.runs import merged_run

pytestmark = pytest.mark.integration

GUIDE = Path(__file__).parents[2] / "docs/guide.md"
SECTION = GUIDE.read_text(encoding="utf-8").split("## Merging without tr")[1]
SECTION = SECTION.split("\n## ")[0]
TASKS = {
    "mnli": ["entailment", "neutral", "contradiction"],
    "qqp": [0, 1],
    "rte": ["entailment", "not_entailment"],
}
WORDS = ("a man", "a dog", "the film", "walks", "sleeps", "is good")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with `data` and the runs that the guide's lines merge."""
    folder = tmp_path_factory.mktemp("merged")
    for seed, (task, labels) in enumerate(TASKS.items()):
        draw = np.random.default_rng(seed)
        for split, count in (("train", 40), ("dev", 20)):
            rows = []
            for _ in range(count):
                texts = [" ".join(draw.choice(WORDS, 3)) for _ in range(2)]
                label = labels[int(draw.integers(len(labels)))]
                row = {"sentence1": texts[0], "sentence2": texts[1]}
                rows.append({**row, "label": label})
            commands.write_rows(folder / "data" / task / f"{split}.jsonl", rows)
        assert _train(folder, task, seed) == 0
    return folder


def _train(folder, task, seed):
    return commands.run(
        folder / "runs" / task,
        {
            "task": task,
            "seed": seed,
            "encoder": commands.ENCODER,
            "method": {"name": "pfeiffer", "units": 4},
            "data": {"data_dir": str(folder / "data"), "max_length": 16},
            "train": {"epochs": 2, "learning_rate": 1e-2, "batch_size": 8},
        },
        mode="train",
    )


def _blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", SECTION, re.DOTALL)


def _commands():
    """Yields the guide's `tf-adapters merge`, each as a list of flags."""
    text = "".join(_blocks("sh")).replace("\\\n", " ")
    for line in text.splitlines():
        if line.startswith("tf-adapters merge"):
            yield shlex.split(line)[2:]


def _adapter(run):
    return load_file(run / "adapter/adapter.safetensors")


def _result(run):
    return json.loads((run / "result.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "flags", list(_commands()), ids=lambda flags: flags[-1]
)
def test_a_line_of_the_guide_leaves_a_run_that_evaluates(
    flags, folder, monkeypatch, capsys
):
    monkeypatch.chdir(folder)
    options = dict(flag.removeprefix("--").split("=", 1) for flag in flags)
    run = folder / options["model_dir"]
    assert subcommands.run("merge", *flags) == 0
    result = _result(run)
    assert result["merged"]["how"] == options.get("how", "mean")
    capsys.readouterr()
    assert commands.run(run, mode="eval") == 0
    accuracy = result["validation"]["accuracy"]
    assert f"validation: accuracy {accuracy:.4f}" in capsys.readouterr().out


def test_data_that_have_moved_may_be_named(folder):
    run = folder / "runs" / next(iter(TASKS))
    config = merged_run._config_of(run, {"file": "moved.csv"})
    assert config.data.file == str(Path("moved.csv").absolute())
    flags = cli_flags.define(cli_flags.load_command("merge"))
    assert {"data", "validation", "test", "task_file", "plugin"} <= {*flags}


def test_the_guides_python_runs(folder, monkeypatch):
    monkeypatch.chdir(folder)
    load_encoder = load.load_encoder
    monkeypatch.setattr(
        load, "load_encoder", lambda _: load_encoder(commands.ENCODER)
    )
    (code,) = _blocks("python")
    names = {"tf_adapters": tf_adapters, "texts": ["a man walks"] * 8}
    exec(code, names)
    assert (folder / "merged/adapter_config.json").exists()


@pytest.fixture
def mean(folder):
    """The run of a mean whose task is not the last member's."""
    run = folder / "runs/mean_for_mnli"
    if not run.exists():
        adapters = f"{folder}/runs/mnli,{folder}/runs/qqp"
        flags = [f"--adapters={adapters}", f"--head_of={folder}/runs/mnli"]
        assert subcommands.run("merge", *flags, f"--model_dir={run}") == 0
    return run


def test_the_mean_is_numpys_and_answers_the_named_members_task(folder, mean):
    found, one, two = (
        _adapter(run)
        for run in (mean, folder / "runs/mnli", folder / "runs/qqp")
    )
    for name, value in found.items():
        wanted = one[name]
        if not name.startswith("head/"):
            wanted = (one[name] + two[name]) / 2
        np.testing.assert_allclose(value, wanted, atol=1e-6)
    assert _result(mean)["task"] == "mnli"


def test_its_adapter_folder_says_how_good_it_is_and_of_what(mean, folder):
    path = mean / "adapter/adapter_config.json"
    details = json.loads(path.read_text(encoding="utf-8"))["details"]
    assert details["validation"] == _result(mean)["validation"]
    adapters = [str(folder / "runs" / name) for name in ("mnli", "qqp")]
    assert details["merged"]["adapters"] == adapters
    assert details["text_fields"] == ["premise", "hypothesis"]


def test_it_predicts_and_becomes_another_librarys_folder(mean, folder, capsys):
    rows = [{"sentence1": "a man walks", "sentence2": "a dog sleeps"}]
    path = commands.write_rows(folder / "texts.jsonl", rows)
    capsys.readouterr()
    assert commands.run(mean, mode="predict", input=path) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["label"] in TASKS["mnli"]
    assert commands.run(mean, mode="export", format="adapterhub") == 0
    assert (mean / "adapterhub/mnli/adapter_config.json").exists()


def test_a_head_with_other_classes_than_the_data_is_refused(
    folder, tmp_path, capsys
):
    rows = [
        {"text": f"{word} {i}", "label": label}
        for i in range(5)
        for word, label in (("good", "b"), ("bad", "c"), ("dull", "a"))
    ]
    run, table = tmp_path / "one", tmp_path / "table.jsonl"
    flags = [f"--data={table}", f"--encoder={commands.ENCODER}"]
    flags += ["--epochs=1", "--max_length=16"]
    commands.write_rows(table, rows)
    assert subcommands.run("train", *flags, f"--model_dir={run}") == 0
    commands.write_rows(table, [row for row in rows if row["label"] != "a"])
    capsys.readouterr()
    flags = [f"--adapters={run},{run}", f"--model_dir={tmp_path / 'both'}"]
    assert subcommands.run("merge", *flags) == 1
    assert "predicts a, b, c, but task" in capsys.readouterr().err


MISTAKES = {
    "a run is there": (["--model_dir={runs}/rte"], "holds a run"),
    "over a member": (["--model_dir={runs}/qqp"], "would replace it"),
    "no numbers": (["--model_dir={runs}/x", "--weights=a,b"], "a number for"),
    "one number": (["--model_dir={runs}/x", "--weights=1"], "needs a number"),
    "no such way": (["--model_dir={runs}/x", "--how=median"], "way to merge"),
    "no run": (
        ["--model_dir={runs}/x", "--head_of={data}"],
        "is not a run folder",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_ends_in_a_sentence(case, folder, capsys):
    flags, sentence = MISTAKES[case]
    runs = folder / "runs"
    flags = [flag.format(runs=runs, data=folder / "data") for flag in flags]
    assert (
        subcommands.run("merge", f"--adapters={runs}/mnli,{runs}/qqp", *flags)
        == 1
    )
    assert sentence in capsys.readouterr().err
    assert not (runs / "x").exists()
