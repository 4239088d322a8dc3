"""Tests fusion's first stage: which adapters it trains, where, and reuse."""

import dataclasses
import json
import os
from pathlib import Path
import shutil

import pytest

from tests import commands
from tests.cli import subcommands
from tests.fixtures import huggingface_folders
from tests.fixtures import studies
from tf_adapters.cli import analyse
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import DataError
from tf_adapters.config import resolve
from tf_adapters.config import settings as config_settings
from tf_adapters.launch import fusion_members
from tf_adapters.launch import local_runner
from tf_adapters.launch import member_plan
from tf_adapters.launch import planned_run
from tf_adapters.runs import finished_run
from tf_adapters.runs import task_data
from tf_adapters.runs import training_run

SETTINGS = {"method": {"name": "pfeiffer", "units": 8}, "train": {"epochs": 2}}


@pytest.fixture(name="tmp_path")
def _folder_of_its_own(tmp_path):
    """Fusions would take the members in the folders of other tests."""
    path = tmp_path / "studies" / "study"
    path.mkdir(parents=True)
    return path


def _config(tasks=("demo_sentiment", "demo_entailment"), **layer):
    members = {"tasks": list(tasks), "settings": SETTINGS}
    return resolve.resolve_config(
        {
            "task": "demo_sentiment",
            "method": "fusion",
            "seed": 3,
            "data": {"max_length": 16, "max_train_examples": 40},
            "members": members,
        },
        layer,
    )


class Trainer(studies.FakeRunner):
    """Leaves the adapter and the fingerprints of a trained run, too."""

    def __call__(self, config_file, folder, log):
        status = super().__call__(config_file, folder, log)
        if status == 0:
            studies.finish(resolve.load_config(config_file), folder)
        return status


def _train(config, folder, score=studies.score):
    runner = Trainer(score)
    return fusion_members.train_members(config, folder, runner), runner.seen


def test_members_have_the_fusions_data_and_their_own_method():
    runs = member_plan.plan_members(_config())
    assert [run.id for run in runs] == ["demo_sentiment", "demo_entailment"]
    for run in runs:
        assert run.config.task == run.id
        assert run.config.method.units == 8
        assert (run.config.seed, run.config.train.epochs) == (3, 2)
        assert run.config.data.max_train_examples == 40
        assert not run.config.members.tasks


def test_targets_on_tables_share_members():
    data = {"file": "x.csv", "text": ["review"], "label": "stars"}
    table = {"task": "x", "data": {**data, "head": "regression"}}
    named, of_table = (
        member_plan.plan_members(_config(**layer)) for layer in ({}, table)
    )
    assert named == of_table
    assert member_plan.digest(named) == member_plan.digest(of_table)


def test_the_preset_trains_members_as_the_paper_does():
    config = resolve.resolve_config({"task": "mrpc", "method": "fusion"})
    run = member_plan.plan_members(config)[0]
    assert (run.config.train.learning_rate, run.config.train.epochs) == (
        1e-4,
        30,
    )
    assert (config.train.learning_rate, config.train.epochs) == (5e-5, 10)


def test_trained_members_become_the_fusions_adapters(tmp_path):
    config, seen = _train(_config(), tmp_path)
    assert seen == ["demo_sentiment", "demo_entailment"]
    names = [Path(folder).name for folder in config.method.adapters]
    assert names == seen
    for folder in config.method.adapters:
        assert (Path(folder) / "result.json").exists()


def test_members_are_found_in_a_folder_next_to_this_one(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    config, seen = _train(_config(), Path("../members"))
    assert len(seen) == 2 and all(map(os.path.isdir, config.method.adapters))
    assert _train(_config(), Path("../members"))[1] == []


def test_another_target_shares_them_and_other_settings_do_not(tmp_path):
    first, _ = _train(_config(), tmp_path)
    second, seen = _train(_config(task="demo_entailment"), tmp_path)
    assert (seen, second.method.adapters) == ([], first.method.adapters)
    third, seen = _train(_config(seed=4), tmp_path)
    assert len(seen) == 2
    assert not set(third.method.adapters) & set(first.method.adapters)


def test_a_finished_run_of_the_same_settings_is_a_member(tmp_path):
    """It can be a study's single-task run, but needs the same settings."""
    own, other = member_plan.plan_members(_config())
    different = dataclasses.replace(other.config, seed=4)
    studies.finish(own.config, tmp_path / "sentiment")
    studies.finish(different, tmp_path / "entailment")
    config, seen = _train(_config(), tmp_path / "members")
    assert seen == ["demo_entailment"]
    assert config.method.adapters[0] == str(tmp_path / "sentiment")


def test_a_run_of_another_study_is_a_member(tmp_path):
    own, _ = member_plan.plan_members(_config())
    name = planned_run.run_id(own.config)
    (tmp_path / "table1").mkdir()
    studies.finish(own.config, tmp_path / "table1" / name)
    config, seen = _train(_config(), tmp_path / "figure4" / "members")
    assert seen == ["demo_entailment"]
    assert config.method.adapters[0] == str(tmp_path / "table1" / name)


def test_a_merge_of_the_same_settings_is_no_member(tmp_path):
    own, _ = member_plan.plan_members(_config())
    studies.finish(own.config, tmp_path / "merged")
    path = tmp_path / "merged" / "result.json"
    result = json.loads(path.read_text()) | {"merged": {"how": "mean"}}
    path.write_text(json.dumps(result))
    _, seen = _train(_config(), tmp_path / "members")
    assert seen == ["demo_sentiment", "demo_entailment"]


def test_a_run_of_which_only_the_result_was_kept_is_no_member(tmp_path):
    own, _ = member_plan.plan_members(_config())
    studies.finish(own.config, tmp_path / "restored")
    (tmp_path / "restored" / "adapter").rmdir()
    _, seen = _train(_config(), tmp_path / "members")
    assert seen == ["demo_sentiment", "demo_entailment"]


def test_members_of_another_study_are_shared(tmp_path):
    runs = member_plan.plan_members(_config())
    # Named before a setting was new: what the runs are is what counts.
    theirs = tmp_path / "table1" / "members" / "0123456789"
    theirs.mkdir(parents=True)
    for run in runs:
        studies.finish(run.config, theirs / run.id)
    config, seen = _train(_config(), tmp_path / "figure4" / "members")
    expected = tuple(str(theirs / run.id) for run in runs)
    assert (seen, config.method.adapters) == ([], expected)


def test_it_waits_for_what_another_process_trains(tmp_path, monkeypatch):
    """Fusions of two tasks that start together share their members."""
    monkeypatch.setattr(fusion_members, "_SECONDS_TO_WAIT", 0)
    runs = member_plan.plan_members(_config())
    path = tmp_path / member_plan.digest(runs) / runs[0].id
    path.mkdir(parents=True)
    with (path / "log.txt").open("a") as log:
        assert local_runner._lock(log)

        def let_go(_):
            studies.finish(runs[0].config, path)
            log.close()

        monkeypatch.setattr(fusion_members.time, "sleep", let_go)
        _, seen = _train(_config(), tmp_path)
    assert seen == ["demo_entailment"]


def test_a_failing_member_is_named_and_the_rest_is_kept(tmp_path):
    def score(config):
        if config.task == "demo_entailment":
            return OSError("the disk is full")
        return studies.score(config)

    with pytest.raises(ConfigError, match="`demo_entailment`.*full"):
        _train(_config(), tmp_path, score)
    _, seen = _train(_config(), tmp_path)
    assert seen == ["demo_entailment"]


def test_a_member_that_failed_is_not_tried_again_while_it_waits(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(fusion_members, "_SECONDS_TO_WAIT", 0)
    runs = member_plan.plan_members(_config())
    path = tmp_path / member_plan.digest(runs) / runs[0].id
    path.mkdir(parents=True)
    trainer, rounds = Trainer(lambda config: OSError("no memory")), []
    with (path / "log.txt").open("a") as log:
        assert local_runner._lock(log)

        def wait(_):
            rounds.append(1)
            if len(rounds) == 3:
                studies.finish(runs[0].config, path)
                log.close()

        monkeypatch.setattr(fusion_members.time, "sleep", wait)
        with pytest.raises(ConfigError, match="`demo_entailment` was not"):
            fusion_members.train_members(_config(), tmp_path, trainer)
    assert trainer.seen == ["demo_entailment"]


@pytest.mark.parametrize("kind", ["other data", "no adapter"])
def test_a_finished_member_that_is_of_no_use_is_named(tmp_path, kind):
    _train(_config(), tmp_path)
    plan = member_plan.plan_members(_config())
    path = tmp_path / member_plan.digest(plan) / "demo_entailment"
    if kind == "no adapter":
        (path / "adapter").rmdir()
    else:
        result = json.loads((path / "result.json").read_text())
        result["data_fingerprint"]["train"] = "f00"
        (path / "result.json").write_text(json.dumps(result))
    with pytest.raises(ConfigError, match="Remove that folder") as error:
        _train(_config(), tmp_path)
    assert str(path) in str(error.value)


def test_members_that_train_together_are_one_run(tmp_path):
    """MT-A: the fusion is over the adapters and on the encoder of that run."""
    settings = {**SETTINGS, "method": {"name": "multitask"}}
    members = {"tasks": ["demo_sentiment", "mrpc"], "settings": settings}
    plain = _config()
    config = dataclasses.replace(
        plain, members=config_settings.MembersConfig(**members)
    )
    (run,) = member_plan.plan_members(config)
    assert run.config.method.tasks == ("demo_sentiment", "mrpc")
    assert run.metrics == {"demo_sentiment": "accuracy", "mrpc": "f1"}
    fused = fusion_members.with_adapters(config, [run], [tmp_path])
    assert fused.method.adapters == (
        str(tmp_path / "demo_sentiment"),
        str(tmp_path / "mrpc"),
    )
    assert fused.encoder == str(tmp_path / "encoder")


def test_mistakes(tmp_path):
    with pytest.raises(ConfigError, match="a task twice"):
        member_plan.plan_members(_config(tasks=("sst2", "sst2")))
    with pytest.raises(ValueError, match="Did you mean `sst2`"):
        member_plan.plan_members(_config(tasks=("sst22",)))
    wrong = dataclasses.replace(
        _config().members, settings={"train": {"epoch": 3}}
    )
    config = dataclasses.replace(_config(), members=wrong)
    with pytest.raises(ConfigError, match="`members`, `demo_sent.*epoch"):
        member_plan.plan_members(config)


def test_missing_data_are_reported_with_what_fusion_does_and_has(
    tmp_path,
):
    """The error comes before training, for all members at once."""
    rows = [{"sentence1": "a", "sentence2": "b", "label": "entailment"}]
    commands.write_rows(tmp_path / "rte" / "train.jsonl", rows)
    data = {"data_dir": str(tmp_path)}
    config = _config(("scitail", "rte", "boolq"), data=data)
    with pytest.raises(DataError) as raised:
        _train(config, tmp_path / "members")
    sentence = str(raised.value)
    for part in (
        "first trains an adapter for each task of `members.tasks`: scitail, "
        "rte, boolq",
        "pfeiffer, 2 epochs, learning rate 0.0001",
        "--params_override=members.settings.train.epochs=",
        "data for rte, and none for scitail, boolq: No data of task `scitail`",
        "--params_override=members.tasks=[rte]",
    ):
        assert part in sentence


def test_the_setting_that_reaches_members_reaches_them():
    layers = [
        {"task": "mrpc", "method": "fusion", "train": {"epochs": 1}},
        resolve.parse_override("members.settings.train.epochs=7"),
    ]
    run = member_plan.plan_members(resolve.resolve_config(*layers))[0]
    assert run.config.train.epochs == 7
    assert run.config.train.learning_rate == 1e-4


@pytest.mark.slow
def test_both_stages_and_pruning_with_real_processes(tmp_path, capsys):
    """Trains a fusion from scratch, and evaluates a smaller one."""
    config = _config(
        encoder=str(huggingface_folders.ONE_BLOCK), train={"epochs": 1}
    )
    config = fusion_members.train_members(config, tmp_path / "members")
    data = task_data.load_task_data(config)
    result = training_run.train_experiment(config, data, tmp_path / "fusion")
    smaller = tmp_path / "smaller"
    flags = [f"--model_dir={tmp_path / 'fusion'}", f"--keep_in={smaller}"]
    assert analyse.run_analysis(["fusion_pruning", *flags, "--keep=1"]) == 0
    lines = (tmp_path / "fusion" / "fusion_pruning.csv").read_text()
    first, second = lines.splitlines()[1:]
    whole = result["validation"]["accuracy"]
    assert first.startswith("2,") and f"accuracy,{whole:.6g}" in first
    left = second.split(",")[1]
    kept = resolve.load_config(smaller / "config.yaml")
    assert [Path(folder).name for folder in kept.method.adapters] == [left]
    values = finished_run.evaluate_run(kept, smaller)
    value = values["validation"]["accuracy"]
    assert f"accuracy,{value:.6g}" in second
    # The export of a fusion whose adapter has moved is the fusion's.
    moved = str(tmp_path / "moved")
    shutil.move(kept.method.adapters[0], moved)
    layer = {"method": {"adapters": [moved]}}
    for command in (("eval",), ("explain", "a fine film")):
        name, *rest = command
        assert subcommands.run(name, str(smaller), *rest) == 1
        assert "Give the folders of all its members" in capsys.readouterr().err
        flag = f"--adapters={moved}"
        assert subcommands.run(name, str(smaller), *rest, flag) == 0
    options = {"mode": "export", "adapters": [moved]}
    assert commands.run(smaller, layer, **options) == 0
    assert (smaller / "export" / config.task / "1" / "saved_model.pb").exists()
    assert not (smaller / "tasks").exists()
