"""Tests the runs of a study's YAML: settings, precedence and errors."""

import itertools
import re

import pytest

from tests.fixtures import studies
from tf_adapters import methods
from tf_adapters.common.errors import ConfigError
from tf_adapters.config import resolve
from tf_adapters.launch import planned_run
from tf_adapters.papers.studies.grid import declaration
from tf_adapters.papers.studies.grid import plan as study_plan

OWN_EPOCHS = {"when": {"seed": 0}, "set": {"train.epochs": 3}}


def test_a_run_for_each_point_of_the_grid(tmp_path):
    _, runs = studies.plan(tmp_path)
    points = {(r.config.task, r.point["method"], r.config.seed) for r in runs}
    assert points == set(
        itertools.product(["sst2", "cola"], ["houlsby", "head_only"], [0, 1, 2])
    )
    assert len(runs) == len({run.id for run in runs}) == 12
    assert all(run.config.train.batch_size == 16 for run in runs)
    assert {run.metric for run in runs} == {"accuracy", "matthews"}


def test_grids_of_a_list_are_joined(tmp_path):
    grid = [
        {"method": ["houlsby"], "method.units": [2, 4]},
        {"method": ["top_layers"], "method.k": [1, 2, 3]},
    ]
    _, runs = studies.plan(
        tmp_path, base={"task": "sst2"}, grid=grid, where=None, small=None
    )
    assert [run.point for run in runs] == [
        {"method": "houlsby", "method.units": 2},
        {"method": "houlsby", "method.units": 4},
        {"method": "top_layers", "method.k": 1},
        {"method": "top_layers", "method.k": 2},
        {"method": "top_layers", "method.k": 3},
    ]
    assert [run.config.method.units for run in runs[:2]] == [2, 4]


def test_where_sets_what_matches_and_the_later_entry_wins(tmp_path):
    where = [
        {"when": {"method": ["houlsby"]}, "set": {"train.epochs": 2}},
        {
            "when": {"method": "houlsby", "task": "cola"},
            "set": {"train.epochs": 9},
        },
    ]
    base = {"train.epochs": 5}
    _, runs = studies.plan(tmp_path, where=where, base=base)
    epochs = {
        (r.config.task, r.point["method"]): r.config.train.epochs for r in runs
    }
    assert epochs == {
        ("sst2", "houlsby"): 2,
        ("cola", "houlsby"): 9,
        ("sst2", "head_only"): 5,
        ("cola", "head_only"): 5,
    }


def test_numbers_by_task_are_one_setting(tmp_path):
    numbers = {"sst2": 20, "cola": 10}
    base = {"data.train_examples_of": numbers}
    _, runs = studies.plan(tmp_path, base=base)
    assert runs[0].config.data.train_examples_of == numbers
    with pytest.raises(ConfigError, match="is a mapping from a task to its"):
        studies.plan(tmp_path, base={"data.train_examples_of": {"sst2": 0}})


def test_a_mapping_that_is_a_settings_value_is_one_setting(tmp_path):
    stack = {"stack_on": "en", "language_adapters": {"de": "a", "tr": "b"}}
    _, runs = studies.plan(tmp_path, base=stack)
    assert {*runs[0].config.language_adapters} == {"de", "tr"}
    base = {"search": {"trials": 2, "space": {"units": [64, 128]}}}
    grid = {"method": ["no_bert"], "task": ["sst2"]}
    _, (run,) = studies.plan(
        tmp_path, base=base, grid=grid, where=None, small=None
    )
    assert run.config.search.space["units"] == [64, 128]
    assert run.settings["search.space"] == base["search"]["space"]


def test_flags_win_over_base_and_where(tmp_path):
    flags = {"train": {"epochs": 3, "batch_size": 4}, "data": {}}
    _, runs = studies.plan(tmp_path, flags=flags)
    assert {run.config.train.epochs for run in runs} == {3}
    assert {run.config.train.batch_size for run in runs} == {4}


def test_small_cuts_the_grid_and_overrides_the_rest(tmp_path):
    _, runs = studies.plan(tmp_path, "small")
    assert {run.config.task for run in runs} == {"cola"}
    assert {run.config.seed for run in runs} == {0, 1}
    assert {run.config.train.epochs for run in runs} == {1}
    assert len(runs) == 4


def test_ids_do_not_depend_on_the_order_or_the_form_of_keys(tmp_path):
    grid = studies.STUDY["grid"]
    _, runs = studies.plan(tmp_path)
    _, other = studies.plan(
        tmp_path,
        base={"train.batch_size": 16, "encoder": "minilm"},
        grid={key: grid[key][::-1] for key in reversed(grid)},
    )
    assert [run.id for run in runs] != [run.id for run in other]
    assert {run.id for run in runs} == {run.id for run in other}


def test_ids_stay_when_seeds_are_added_or_data_lie_elsewhere(tmp_path):
    grid = {**studies.STUDY["grid"], "seed": [0]}
    _, few = studies.plan(tmp_path, grid=grid)
    _, many = studies.plan(tmp_path, flags={"data": {"data_dir": "/elsewhere"}})
    assert {run.id for run in few} < {run.id for run in many}


def test_ids_do_not_name_what_is_the_default(tmp_path):
    """Settings that a later version adds do not change ids."""
    _, runs = studies.plan(tmp_path)
    flags = {"train": {"clip_norm": 1.0}, "pretrain": {"steps": 0}}
    _, same = studies.plan(tmp_path, flags=flags)
    assert {run.id for run in runs} == {run.id for run in same}
    settings = planned_run._without_defaults(resolve.to_dict(runs[0].config))
    assert set(settings) == {"task", "method", "train"}
    assert "clip_norm" not in settings["train"]


def test_ids_change_with_any_setting_and_are_readable(tmp_path):
    _, runs = studies.plan(tmp_path)
    _, other = studies.plan(tmp_path, flags={"train": {"clip_norm": 2.0}})
    assert not {run.id for run in runs} & {run.id for run in other}
    assert re.fullmatch(r"sst2-houlsby-seed0-[0-9a-f]{10}", runs[0].id)


def test_ids_are_of_what_is_written_and_paths_hold_from_anywhere(
    tmp_path, monkeypatch
):
    ids = []
    for name in ("a", "b"):
        (tmp_path / name / "encoder").mkdir(parents=True)
        monkeypatch.chdir(tmp_path / name)
        _, runs = studies.plan(tmp_path, base={"encoder": "encoder"})
        encoder = str(tmp_path / name / "encoder")
        assert {run.config.encoder for run in runs} == {encoder}
        ids.append([run.id for run in runs])
    assert ids[0] == ids[1]


def test_another_tpu_makes_no_other_run(tmp_path):
    ids = [
        [run.id for run in studies.plan(tmp_path, base={"tpu": name})[1]]
        for name in ("", "node-1", "node-2")
    ]
    assert ids[0] == ids[1] == ids[2]


def test_a_saved_configuration_has_the_identity_of_its_run(tmp_path):
    _, runs = studies.plan(tmp_path)
    for run in runs:
        resolve.save_config(run.config, tmp_path / "config.yaml")
        saved = resolve.load_yaml(tmp_path / "config.yaml")
        assert planned_run.identity(saved) == planned_run.identity(
            resolve.to_dict(run.config)
        )


def test_a_grid_may_select_over_other_values(tmp_path):
    grid = [
        {"method": ["houlsby"], "select_over": {"method.units": [2, 4]}},
        {"method": ["head_only"]},
    ]
    study, runs = studies.plan(
        tmp_path,
        base={"task": "sst2"},
        grid=grid,
        where=None,
        small={"method.units": [4]},
        select_over={"train.epochs": [1, 2, 3]},
    )
    assert [run.point for run in runs] == [
        {"method": "houlsby", "method.units": 2},
        {"method": "houlsby", "method.units": 4},
        *({"method": "head_only", "train.epochs": n} for n in (1, 2, 3)),
    ]
    assert study.select_over == ["method.units", "train.epochs"]
    assert study.report.rows == ["method"]
    _, runs = studies.plan(
        tmp_path,
        "small",
        base={"task": "sst2"},
        grid=grid,
        where=None,
        small={"method.units": [4]},
    )
    assert [run.point.get("method.units") for run in runs] == [4, None]


def test_a_block_has_entries_of_where_and_a_report_of_its_own(tmp_path):
    entry = {
        "when": {"method": "houlsby", "encoder": "a_folder"},
        "set": {"method.units": 3},
    }
    small = {
        "encoder": "a_folder",
        "where": [entry],
        "report": {"split": "test"},
    }
    base = {"train": {"batch_size": 16}}
    study, runs = studies.plan(tmp_path, "small", small=small, base=base)
    units = {getattr(run.config.method, "units", None) for run in runs}
    assert units == {3, None}
    assert study.report.split == "test" and len(runs) == 12
    study, runs = studies.plan(tmp_path, small=small, base=base)
    assert study.report.split == "validation"
    assert runs[0].config.method.units == 8
    entry["when"]["encoder"] = "minilm"
    with pytest.raises(ConfigError, match="No run of the study matches"):
        studies.plan(tmp_path, "small", small=small, base=base)


def test_a_block_may_have_a_grid_of_its_own(tmp_path):
    rate = "train.learning_rate"
    study, runs = studies.plan(
        tmp_path,
        "two_cores",
        base={"encoder": "minilm", "train": {"learning_rate": 5e-3}},
        where=[{"when": {"method": "houlsby"}, "set": {rate: 2e-3}}],
        two_cores={
            "grid": [
                {"method": [name], "task": ["sst2"], "seed": [0]}
                | {"select_over": {rate: rates}}
                for name, rates in (("houlsby", [1, 2]), ("head_only", [3]))
            ]
        },
    )
    assert study.select_over == [rate]
    found = [(run.point["method"], run.point["seed"]) for run in runs]
    assert found == [("houlsby", 0), ("houlsby", 0), ("head_only", 0)]
    assert [run.config.train.learning_rate for run in runs] == [1, 2, 3]


def test_what_is_empty_in_a_block_counts_as_none(tmp_path):
    small = {**studies.STUDY["small"], "where": None, "report": None}
    assert len(studies.plan(tmp_path, "small", small=small)[1]) == 4


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gird": {}}, "Unknown setting `gird`. Did you mean `grid`"),
        ({"grid": None}, "`grid` is missing"),
        ({"grid": []}, "or a list of at least one. Received: []"),
        ({"grid": "seed"}, "`grid` must be of type dict or list"),
        ({"base": {"max_train_examples": 9}}, "mean `data.max_train_examples`"),
        ({"base": {"seed": 0}}, "`seed` is set both in `grid` and in `base`"),
        ({"select_over": {"seed": [0]}}, "both in `grid` and in `select_over`"),
        ({"grid": {"task": "sst2"}}, "must be a list of one or more values"),
        ({"grid": {"task": ["sst3"]}, "where": []}, "Did you mean `sst2`"),
        ({"base": {"train.epochs": 1, "train": {"epochs": 2}}}, "set twice"),
        ({"base": {"train.epochs": "many"}}, "`train.epochs` must be of type"),
        ({"base": {"method.k": 1}}, "Unknown setting `method.k`"),
        (
            {"report": {"row": "task"}},
            "Unknown setting `report.row`. Did you mean `report.rows`",
        ),
        ({"report": {"split": "dev"}}, "must be one of validation, valid"),
        ({"report": {"best_of": "seed"}}, "must be one of `report.rows`: meth"),
        ({"small": {"report": {"row": 1}}}, "Unknown setting `report.row`"),
        ({"small": {"where": 5}}, "`where` must be a list of entries"),
        ({"small": {"where": {}}}, "`where` must be a list of entries"),
        (
            {"small": {"seed": [0], "train.epochs": 1, "where": [OWN_EPOCHS]}},
            "`train.epochs` is set both in the block and in its `where`",
        ),
        (
            {"small": {"seed": [0], "grid": {"seed": [1]}}},
            "`seed` is set both in the block and in its `grid`",
        ),
        ({"small": {"grid": {"sead": [1]}}}, "Unknown setting `sead`"),
        ({"report": {"rows": []}}, "mix runs of different `method`"),
        ({"report": {"metric": "f1"}}, "must be one of task `sst2`: accuracy"),
        ({"where": [{"when": {"method": "full"}, "set": {}}]}, "No run of"),
        ({"where": [{"if": {}}]}, "Unknown setting `where.if`"),
        (
            {"where": [{"when": {"seed": 1}, "set": {"method": "full"}}]},
            "`method` is set both in `grid` and in `where` for",
        ),
        ({"grid": {"task": ["sst2", "sst2"]}, "where": []}, "same run"),
        (
            {"grid": {"seed": [*range(400)], "train.epochs": [*range(400)]}},
            "The study has 160,000 runs, more than 100,000",
        ),
    ],
)
def test_mistakes_are_said_before_a_run_starts(tmp_path, changes, message):
    with pytest.raises(ConfigError, match=re.escape(message)) as error:
        studies.plan(tmp_path, **changes)
    assert "demo.yaml" in str(error.value)


def test_a_block_may_make_points_of_two_grids_one(tmp_path):
    method = ["houlsby", "head_only"]
    grids = [
        {"task": ["sst2"], "method": method, "seed": [0, 1]},
        {"task": ["cola"], "method": method, "seed": [0]},
    ]
    small = {"task": ["cola"], "seed": [0, 1]}
    assert len(studies.plan(tmp_path, grid=grids)[1]) == 6
    assert len(studies.plan(tmp_path, "small", grid=grids, small=small)[1]) == 4
    # Of points that differ one row of the table would vanish.
    grids[1]["method.init_stddev"] = [0.01]
    grids[1]["method"] = ["houlsby"]
    with pytest.raises(ConfigError, match="are the same run"):
        studies.plan(tmp_path, "small", grid=grids, small=small)


def test_a_block_without_runs_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="`seed` of a reduced form is an emp"):
        studies.plan(tmp_path, "small", small={"seed": []})


def test_a_flag_must_not_set_a_key_of_the_grid(tmp_path):
    with pytest.raises(ConfigError, match="in `grid` and in a flag"):
        studies.plan(tmp_path, flags={"seed": 3})


def test_small_needs_a_block(tmp_path):
    with pytest.raises(ConfigError, match="--small needs a block"):
        study_plan.load_study(studies.write(tmp_path, small=None), "small")


def test_an_unknown_study_lists_those_there_are():
    with pytest.raises(ConfigError, match="Did you mean `methods`"):
        declaration.find_study("method")


@pytest.mark.parametrize(
    "path",
    sorted(declaration.STUDIES.glob("*.yaml")),
    ids=lambda path: path.stem,
)
def test_official_studies_have_the_runs_that_their_heads_say(path):
    head = path.read_text().split("\nbase:")[0]
    _, runs = study_plan.load_study(path)
    assert f"# {len(runs)} runs" in head
    _, small = study_plan.load_study(path, "small")
    assert len(small) < len(runs)
    if "with --small" in head:
        assert f"{len(small)} with --small" in head


def test_a_method_within_another_is_one_value(tmp_path):
    adapter = {"name": "pfeiffer", "units": 8}
    base = {
        "encoder": "minilm",
        "method": {"tasks": ["sst2", "cola"], "adapter": adapter},
    }
    grid = {"method": ["multitask"]}
    _, (run,) = studies.plan(
        tmp_path, base=base, grid=grid, where=[], small=None
    )
    assert run.config.method.adapter == methods.Pfeiffer(units=8)
