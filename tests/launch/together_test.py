"""Tests which runs train together, and failures, without training."""

import json
import os
import signal

import pytest

from tests.fixtures import studies
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import UserError
from tf_adapters.config import resolve
from tf_adapters.launch import finished_runs
from tf_adapters.launch import local_runner
from tf_adapters.launch import member_plan
from tf_adapters.launch import together
from tf_adapters.papers.studies import study as study_lib
from tf_adapters.runs import earlier_runs
from tf_adapters.runs import folder_lock
from tf_adapters.training.device_errors import DeviceMemoryError

pytest.importorskip("jax")

BASE = {
    "encoder": "minilm",
    "backend": "jax",
    "data": {"batching": "fixed", "max_train_examples": 20},
    "train": {"batch_size": 16, "early_stopping_patience": None},
}
RATE = "train.learning_rate"
GRID = {
    "task": ["demo_sentiment"],
    "method": ["houlsby", "head_only"],
    "seed": [0, 1, 2],
}
TASKS = ["demo_sentiment", "demo_entailment"]
FUSION = {
    "grid": {"task": TASKS[:1], "method": ["fusion"], "seed": [0, 1]},
    "where": [
        {
            "when": {"method": "fusion"},
            "set": {
                "train.early_stopping_patience": None,
                "members.tasks": TASKS,
                "members.settings": {
                    "method": {"name": "pfeiffer", "units": 8},
                    "train": {"early_stopping_patience": None},
                },
            },
        }
    ],
}
LAYER = {"data": {}, "train": {}}


class FakeTrainer:
    """Writes finished run folders; its calls are in `seen`.

    Args:
        error: Function from a `Config` to the text of the run's error, or to an
            exception, which makes its group fail.
    """

    def __init__(self, error=lambda config: ""):
        self.error = error
        self.seen = []

    def train(self, configs, folders, declared):
        self.seen.append(configs)
        errors = [self.error(config) for config in configs]
        for error in errors:
            if isinstance(error, Exception):
                raise error
        runs = zip(configs, folders, declared, errors, strict=True)
        for config, folder, own, error in runs:
            if not error:
                studies.finish(config, folder)
                resolve.save_config(own, folder / earlier_runs.DECLARED)
        return errors


def _plan(folder, **changes):
    changes = {"base": BASE, "grid": GRID, "where": None, **changes}
    return studies.plan(folder, small=None, **changes)[1]


def _jobs(runs):
    return [together._Job(run, run.id, run.config) for run in runs]


def _groups(runs, at_once=20):
    """Returns the method and the seeds of each group."""
    found = []
    for group in together._groups(_jobs(runs), at_once):
        (name,) = {type(job.config.method).__name__ for job in group}
        found.append((name, [job.config.seed for job in group]))
    return found


def test_runs_of_other_seeds_and_rates_form_a_group(tmp_path):
    runs = _plan(tmp_path, grid={**GRID, RATE: [1e-3, 1e-4], "seed": [0, 1]})
    assert _groups(runs) == [
        ("Houlsby", [0, 0, 1, 1]),
        ("HeadOnly", [0, 0, 1, 1]),
    ]


@pytest.mark.parametrize("key", ["train.epochs", "data.max_length"])
def test_other_settings_form_another_group(tmp_path, key):
    grid = {**GRID, "method": ["houlsby"], key: [8, 9]}
    assert len(_groups(_plan(tmp_path, grid=grid))) == 2


@pytest.mark.parametrize(
    ("at_once", "sizes"), [(7, [7]), (6, [4, 3]), (3, [3, 3, 1]), (1, [1] * 7)]
)
def test_groups_are_about_equal(tmp_path, at_once, sizes):
    grid = {**GRID, "method": ["houlsby"], "seed": [*range(7)]}
    groups = _groups(_plan(tmp_path, grid=grid), at_once)
    assert [len(seeds) for _, seeds in groups] == sizes
    assert sum([seeds for _, seeds in groups], []) == [*range(7)]


def test_fusions_with_their_own_members_form_a_group(tmp_path):
    trainer = FakeTrainer()
    runs = _plan(tmp_path, **FUSION)
    together.run_missing(runs, tmp_path / "runs/demo", trainer=trainer)
    *members, fusions = trainer.seen
    found = [[(c.task, c.seed) for c in group] for group in members]
    assert found == [[(task, 0), (task, 1)] for task in TASKS]
    assert [config.seed for config in fusions] == [0, 1]
    first, second = (config.method.adapters for config in fusions)
    assert len(first) == len(second) == 2 and first != second
    assert all(finished_runs.find_run(r, tmp_path / "runs/demo") for r in runs)


def test_fusions_of_given_adapters_train_apart_and_no_members(tmp_path):
    """Runs of a seed share their model, and so its members."""
    grid = {**FUSION["grid"], "method.adapters": [["a", "b"], ["a", "c"]]}
    runs = _plan(tmp_path, **{**FUSION, "grid": grid})
    trainer = FakeTrainer()
    together.run_missing(runs, tmp_path / "runs/demo", trainer=trainer)
    found = [[config.method.adapters for config in g] for g in trainer.seen]
    first, second = (run.config.method.adapters for run in (runs[0], runs[-1]))
    assert first != second
    assert sorted(found) == sorted([[first] * 2, [second] * 2])


def test_runs_that_combine_no_adapters_train_no_members(tmp_path):
    """Although they have the settings of members."""
    run, *_ = _plan(tmp_path, grid={**GRID, "members.tasks": [TASKS]})
    trainer = FakeTrainer()
    together.run_missing([run], tmp_path / "runs/demo", trainer=trainer)
    assert trainer.seen == [[run.config]]


def test_a_group_that_fails_leaves_the_others_trained(tmp_path, capsys):
    def error(config):
        is_houlsby = hasattr(config.method, "units")
        return UserError("no memory") if is_houlsby else ""

    runs, folder = _plan(tmp_path), tmp_path / "runs/demo"
    together.run_missing(runs, folder, trainer=FakeTrainer(error))
    errors = [finished_runs.read_error(run, folder) for run in runs]
    assert errors == ["no memory"] * 3 + [""] * 3
    found = [finished_runs.find_run(run, folder) is None for run in runs]
    assert found == [True] * 3 + [False] * 3
    assert capsys.readouterr().out.count("FAILED, no memory") == 3
    # Its runs are trained the next time.
    trainer = FakeTrainer()
    together.run_missing(runs, folder, trainer=trainer)
    assert [len(group) for group in trainer.seen] == [3]
    assert not (folder / runs[0].id / "error.txt").exists()
    assert finished_runs.find_run(runs[0], folder)


class SmallDevice(FakeTrainer):
    """Has memory for at most `most` runs at once."""

    def __init__(self, most):
        super().__init__()
        self.most = most

    def train(self, configs, folders, declared):
        if len(configs) > self.most:
            self.seen.append(configs)
            raise DeviceMemoryError("no memory")
        return super().train(configs, folders, declared)


def test_fewer_runs_train_at_once_if_memory_does_not_suffice(tmp_path, capsys):
    runs = _plan(tmp_path, grid={**GRID, "seed": [*range(9)]})
    trainer, folder = SmallDevice(2), tmp_path / "runs/demo"
    together.run_missing(runs, folder, trainer=trainer)
    # The second method does not try nine again.
    sizes = [len(configs) for configs in trainer.seen]
    assert sizes == [9, 3, 1] + [1] * 17
    assert all(finished_runs.find_run(run, folder) for run in runs)
    assert "for 9 runs at once. Training at most 4." in capsys.readouterr().out


def test_a_run_that_alone_needs_more_memory_fails(tmp_path):
    runs, folder = _plan(tmp_path), tmp_path / "runs/demo"
    together.run_missing(runs, folder, trainer=SmallDevice(0))
    errors = [finished_runs.read_error(run, folder) for run in runs]
    assert errors == ["no memory"] * 6


def test_a_run_that_fails_leaves_its_group_trained(tmp_path):
    runs, folder = _plan(tmp_path), tmp_path / "runs/demo"
    trainer = FakeTrainer(lambda config: "not finite" * (config.seed == 1))
    stored = []
    together.run_missing(
        runs, folder, trainer=trainer, store=lambda run, _: stored.append(run)
    )
    errors = [finished_runs.read_error(run, folder) for run in runs]
    assert errors == ["", "not finite", ""] * 2
    assert stored == [run for run in runs if run.config.seed != 1]


def test_a_run_in_another_process_leaves_its_group_trained(tmp_path, capsys):
    runs = _plan(tmp_path)
    (tmp_path / "runs" / runs[0].id).mkdir(parents=True)
    lock = folder_lock.lock_folder(tmp_path / "runs" / runs[0].id)
    together.run_missing(runs, tmp_path / "runs", trainer=FakeTrainer())
    lock.release()
    assert not (tmp_path / "runs" / runs[0].id / "error.txt").exists()
    line = f"{runs[0].id}: {local_runner.ELSEWHERE}, "
    assert line in capsys.readouterr().out
    found = [finished_runs.find_run(run, tmp_path / "runs") for run in runs]
    assert found[0] is None
    assert None not in found[1:]


def test_files_of_an_unfinished_run_are_removed(tmp_path):
    runs = _plan(tmp_path)
    old = tmp_path / "runs" / runs[0].id
    (old / "checkpoints").mkdir(parents=True)
    (old / "log.txt").write_text("of another executor\n")
    together.run_missing(runs, tmp_path / "runs", trainer=FakeTrainer())
    assert not (old / "checkpoints").exists()
    assert not (old / "log.txt").exists()


def test_a_fusion_whose_member_trains_elsewhere_has_not_failed(tmp_path):
    runs, folder = _plan(tmp_path, **FUSION), tmp_path / "runs/demo"
    plan = member_plan.plan_members(runs[0].config)
    member = (folder / "members").absolute() / member_plan.digest(plan)
    (member / plan[0].id).mkdir(parents=True)
    lock = folder_lock.lock_folder(member / plan[0].id)
    together.run_missing(runs, folder, trainer=FakeTrainer())
    lock.release()
    found = [finished_runs.find_run(run, folder) for run in runs]
    assert found[0] is None and found[1] is not None
    assert finished_runs.read_error(runs[0], folder) == ""


def test_a_fusion_whose_member_failed_is_not_trained(tmp_path):
    def error(config):
        failed = config.seed == 1 and config.task == "demo_entailment"
        return "not finite" if failed else ""

    runs, folder = _plan(tmp_path, **FUSION), tmp_path / "runs/demo"
    trainer = FakeTrainer(error)
    together.run_missing(runs, folder, trainer=trainer)
    assert [config.seed for config in trainer.seen[-1]] == [0]
    errors = [finished_runs.read_error(run, folder) for run in runs]
    assert errors == ["", "A member failed: not finite"]


def test_a_member_that_was_trained_on_other_data_is_named(tmp_path):
    runs, folder = _plan(tmp_path, **FUSION), tmp_path / "runs/demo"
    member, _ = member_plan.plan_members(runs[0].config)
    path = member_plan.digest(member_plan.plan_members(runs[0].config))
    path = (folder / "members").absolute() / path / member.id
    studies.finish(member.config, path)
    result = json.loads((path / "result.json").read_text())
    result["data_fingerprint"]["train"] = "f00"
    (path / "result.json").write_text(json.dumps(result))
    together.run_missing(runs, folder, trainer=FakeTrainer())
    assert "Remove that folder" in finished_runs.read_error(runs[0], folder)
    assert finished_runs.find_run(runs[1], folder)
    assert not (path / "error.txt").exists()


def test_a_finished_run_of_other_settings_is_not_overwritten(tmp_path, capsys):
    """For example, if the project and the paths in its settings moved."""
    runs, folder = _plan(tmp_path), tmp_path / "runs/demo"
    path = folder / runs[0].id
    studies.finish(runs[1].config, path)
    before = (path / "result.json").read_text()
    trainer = FakeTrainer()
    together.run_missing(runs, folder, trainer=trainer)
    assert [len(group) for group in trainer.seen] == [2, 3]
    assert (path / "result.json").read_text() == before
    assert "finished run with other settings" in capsys.readouterr().out


def test_settings_are_checked_before_a_run_starts(tmp_path):
    grid = {**GRID, "train.calibrate": [False, True]}
    trainer = FakeTrainer()
    with pytest.raises(ConfigError, match="`train.calibrate` True"):
        together.run_missing(
            _plan(tmp_path, grid=grid), tmp_path / "runs/demo", trainer=trainer
        )
    assert trainer.seen == []


def test_settings_of_members_are_checked_before_a_run_starts(tmp_path):
    (where,) = FUSION["where"]
    members = {"method": "pfeiffer", "train": {"early_stopping_patience": 5}}
    values = {**where["set"], "members.settings": members}
    changes = {**FUSION, "where": [{**where, "set": values}]}
    trainer = FakeTrainer()
    with pytest.raises(ConfigError) as error:
        together.run_missing(
            _plan(tmp_path, **changes), tmp_path / "runs/demo", trainer=trainer
        )
    advice = "set `members.settings.train.early_stopping_patience` to null"
    assert advice in str(error.value) and trainer.seen == []


def test_a_run_that_another_process_has_finished_is_kept(tmp_path):
    runs, folder = _plan(tmp_path), tmp_path / "runs/demo"

    class Slow(FakeTrainer):
        def train(self, configs, folders, declared):
            if not self.seen:
                studies.finish(runs[4].config, folder / runs[4].id)
            return super().train(configs, folders, declared)

    trainer, stored = Slow(), []
    together.run_missing(
        *(runs, folder),
        store=lambda run, _: stored.append(run.id),
        trainer=trainer,
    )
    assert [len(group) for group in trainer.seen] == [3, 2]
    assert sorted(stored) == sorted(run.id for run in runs)


def test_sigterm_stops_the_study(tmp_path, capsys):
    def error(config):
        os.kill(os.getpid(), signal.SIGTERM)
        return ""

    with pytest.raises(local_runner.Terminated):
        together.run_missing(
            *(_plan(tmp_path), tmp_path / "runs/demo"),
            trainer=FakeTrainer(error),
        )
    assert "Stopped. The same command resumes" in capsys.readouterr().out


def _study(path, trainer, monkeypatch, **options):
    """Runs a study with --executor=jax; returns its exit status."""
    run_missing = together.run_missing
    monkeypatch.setattr(
        together,
        "run_missing",
        lambda *args: run_missing(*args, trainer=trainer),
    )
    flags = {"executor": "jax", "study_processes": None, **options}
    return study_lib.run_studies(studies.options(path, **flags), LAYER)


def _write(folder):
    return studies.write(folder, base=BASE, grid=GRID, where=None, small=None)


def test_the_study_fails_with_a_group_and_names_no_log(
    tmp_path, capsys, monkeypatch
):
    def error(config):
        return "" if hasattr(config.method, "units") else UserError("no memory")

    trainer = FakeTrainer(error)
    status = _study(_write(tmp_path), trainer, monkeypatch)
    assert status == 1
    printed = capsys.readouterr().out
    assert printed.count("Failed: ") == 3
    assert "no memory\n" in printed and "log.txt" not in printed


def test_processes_are_the_runs_of_a_group(tmp_path, monkeypatch):
    trainer = FakeTrainer()
    status = _study(_write(tmp_path), trainer, monkeypatch, study_processes=2)
    assert status == 0
    assert [len(group) for group in trainer.seen] == [2, 1, 2, 1]


def test_stored_runs_are_those_of_the_default_executor(tmp_path, monkeypatch):
    path, file = _write(tmp_path), tmp_path / "demo.jsonl"
    options = {"results_file": str(file)}
    status = _study(path, FakeTrainer(), monkeypatch, **options)
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert status == 0 and len(rows) == 6
    options["model_dir"] = str(tmp_path / "elsewhere")
    runner = studies.FakeRunner(studies.score)
    options = studies.options(path, **options)
    assert study_lib.run_studies(options, LAYER, runner) == 0
    assert runner.seen == []
