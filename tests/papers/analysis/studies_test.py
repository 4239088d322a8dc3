"""Compares tables of studies with computations by hand."""

import itertools
import types

import numpy as np
import pandas as pd
import pytest
import yaml

from tf_adapters.cli import analyse
from tf_adapters.common.errors import DataError
from tf_adapters.common.errors import UserError
from tf_adapters.config.presets import OFFICIAL_CONFIGS
from tf_adapters.papers.analysis import curves
from tf_adapters.papers.analysis import fusion_activations
from tf_adapters.papers.analysis import gradient_norms
from tf_adapters.papers.analysis import improvements
from tf_adapters.papers.analysis import similarity
from tf_adapters.papers.analysis import stability
from tf_adapters.papers.analysis import transfer_curves
from tf_adapters.tasks import TASKS


def _write_study(folder, rows, configs=None):
    table = pd.DataFrame(rows)
    for place, (name, value) in enumerate(
        {"state": "finished", "metric": "accuracy"}.items()
    ):
        if name not in table:
            table.insert(min(place, len(table.columns)), name, value)
    table.to_csv(folder / "runs.csv", index=False)
    for run, config in (configs or {}).items():
        (folder / run).mkdir(parents=True)
        (folder / run / "config.yaml").write_text(yaml.safe_dump(config))


def _analyse(name, folder, *flags):
    assert analyse.run_analysis([name, f"--study_dir={folder}", *flags]) == 0
    assert (folder / f"{name}.png").stat().st_size > 5000
    return pd.read_csv(folder / f"{name}.csv", keep_default_na=False)


def test_improvements_of_the_papers_own_numbers():
    """Pfeiffer et al., table 2, from table 1 (docs/papers.md has the two)."""
    path = OFFICIAL_CONFIGS / "studies" / "pfeiffer2021_table1.yaml"
    expected = yaml.safe_load(path.read_text())["expected"]
    means = {
        (task, row["method"]): value
        for row in expected["rows"]
        for task, value in zip(expected["columns"], row["values"], strict=True)
        if task != "average"
    }
    found = improvements.improvements_of_means(
        means, ["fusion", "fusion_multitask"], ["pfeiffer", "multitask"], 0.3
    )
    assert improvements.improved(found) == {
        ("fusion", "pfeiffer"): "9/16",
        ("fusion", "multitask"): "10/16",
        ("fusion_multitask", "pfeiffer"): "7/16",
        ("fusion_multitask", "multitask"): "14/16",
    }
    cells = found.set_index(["task", "method", "baseline"]).change
    assert cells["winogrande", "fusion", "pfeiffer"] == "down"
    assert cells["argument", "fusion", "pfeiffer"] == "same"


def test_improvements_are_of_means_over_seeds(tmp_path):
    values = {"pfeiffer": (0.70, 0.72), "fusion": (0.74, 0.70)}
    rows = [
        {"task": "rte", "method": method, "seed": seed, "validation": value}
        for method, both in values.items()
        for seed, value in enumerate(both)
    ]
    _write_study(tmp_path, rows)
    flags = ["--methods=fusion", "--baselines=pfeiffer"]
    (row,) = _analyse("improvements", tmp_path, *flags).to_dict("records")
    assert row["difference"] == pytest.approx(1) and row["change"] == "up"
    flags = ["--methods=fusion", "--baselines=multitask"]
    assert (
        analyse.run_analysis(
            ["improvements", f"--study_dir={tmp_path}", *flags]
        )
        == 1
    )


def test_scores_in_each_language_in_points(tmp_path):
    rows = [
        {
            "run": f"{method}{seed}",
            "state": "finished",
            "task": "ud_pos",
            "method": method,
            "seed": seed,
            "metric": None,
            "transfer/all": 0.5 + seed / 10,
            "transfer/target": 0.4,
            "transfer/distant": 0.3,
            "transfer/en": 0.9,
        }
        for method in ("full", "houlsby")
        for seed in (0, 1)
    ]
    _write_study(tmp_path, rows)
    table = _analyse("transfer", tmp_path)
    assert len(table) == 4 * 4
    found = table.set_index(["method", "seed", "language"]).score
    assert found["full", 1, "all"] == pytest.approx(60)
    assert found["houlsby", 0, "en"] == pytest.approx(90)


def test_a_study_in_one_language_is_refused(tmp_path, capsys):
    _write_study(tmp_path, [{"task": "sst2", "method": "full", "seed": 0}])
    assert analyse.run_analysis(["transfer", f"--study_dir={tmp_path}"]) == 1
    assert "Set `data.eval_languages`" in capsys.readouterr().err


def _config(position, norm, factor):
    method = {"position": position, "norm": norm, "factor": factor}
    return {"method": method}


def test_each_setting_is_searched_with_the_others_as_usual(tmp_path):
    forms = [
        ("top", "both", 2),
        ("top", "both", 8),
        ("bottom", "both", 2),
        ("bottom", "none", 2),  # Differs in two: in no panel.
        ("top", "none", 2),
        ("top", "before", 8),
    ]
    rows = [
        {
            "run": f"run{i}",
            "task": "sst2",
            "method": "forms",
            "validation": i / 10,
        }
        for i in range(len(forms))
    ]
    full = {"run": "f", "task": "sst2", "method": "full", "validation": 0.95}
    configs = {f"run{i}": _config(*form) for i, form in enumerate(forms)}
    _write_study(tmp_path, [*rows, full], configs)
    table = _analyse(
        "setting_search",
        tmp_path,
        "--panels=method.position,method.norm",
        "--x=method.factor",
        "--reference=full",
    )
    found = {(r.panel, r.setting, r.x): r.score for r in table.itertuples()}
    assert found == {
        ("method.position", "top", 2): 0,
        ("method.position", "top", 8): 10,
        ("method.position", "bottom", 2): 20,
        ("method.norm", "both", 2): 0,
        ("method.norm", "both", 8): 10,
        ("method.norm", "none", 2): 40,
        ("method.norm", "before", 8): 50,
    }
    assert set(table.reference) == {95}


def test_settings_that_are_lists_are_searched(tmp_path, capsys):
    forms = [([], 8, 0.5), ([], 16, 0.25), ([0, 1], 8, 0.75)]
    rows = [
        {"run": f"run{i}", "task": "cola", "method": "a", "validation": value}
        for i, (*_, value) in enumerate(forms)
    ]
    configs = {
        f"run{i}": {"method": {"leave_out": blocks, "units": units}}
        for i, (blocks, units, _) in enumerate(forms)
    }
    _write_study(tmp_path, rows, configs)
    flags = ["--panels=method.leave_out", "--x=method.units"]
    table = _analyse("setting_search", tmp_path, *flags)
    best = table.groupby("setting").score.max().to_dict()
    assert best == {"[]": 50, "[0, 1]": 75}
    flags = ["setting_search", f"--study_dir={tmp_path}", *flags]
    assert analyse.run_analysis([*flags, "--reference=a"]) == 1
    assert "nothing to compare with it" in capsys.readouterr().err


def test_the_remaining_gradient_is_the_end_by_the_beginning():
    norms = [8.0, 4.0, *[1.0] * 16, 0.5, 2.5]  # Tenths of twenty: two each.
    rows = [("a", "full", 0, s, "head", norm) for s, norm in enumerate(norms)]
    rows.append(("b", "houlsby", 0, 0, "block 1", 3.0))
    table = pd.DataFrame(rows, columns=gradient_norms.COLUMNS)
    found = gradient_norms.kept(table).set_index("method").kept
    assert found["full"] == pytest.approx(1.5 / 6)
    assert found["houlsby"] == 1
    gradient_norms.GradientNorms().draw(gradient_norms.kept(table))


def test_curves_of_other_languages_are_means_over_them():
    by_step = {20: [(1.0, 0.5), (3.0, 0.7)], 10: [(4.0, 0.3), (2.0, 0.5)]}
    rows = transfer_curves.transfer_rows(("run", "full", 0), by_step)
    assert rows[0] == ("run", "full", 0, 10, 2, 3.0, 0.4, None)
    assert rows[1][3:] == (20, 2, 2.0, pytest.approx(0.6), 2.0)
    table = pd.DataFrame(rows, columns=transfer_curves.COLUMNS)
    transfer_curves.TransferCurves().draw(table)


def test_curves_of_other_languages_need_another_language(tmp_path):
    (tmp_path / "snapshots" / "5").mkdir(parents=True)
    data = types.SimpleNamespace(eval_languages=("en",))
    config = types.SimpleNamespace(data=data, seed=0)
    run = types.SimpleNamespace(
        folder=tmp_path, label="run", config=config, task=TASKS["xnli"]
    )
    with pytest.raises(UserError, match="in no other language .* en. Train"):
        transfer_curves.TransferCurves().rows(run, None)


def test_boxes_have_a_panel_for_each_value_of_other_settings(tmp_path):
    rows = [
        {
            "task": "cola",
            "method": method,
            "encoder": encoder,
            "rate": rate,
            "metric": "matthews",
            "validation": rate,
        }
        for method in ("full", "houlsby")
        for encoder in ("a", "b")
        for rate in (0.1, 0.2)
    ]
    _write_study(tmp_path, rows)
    flags = ["--over=rate", "--panels=encoder"]
    table = _analyse("stability", tmp_path, *flags)
    assert len(table) == 8 and set(table.panel) == {"a", "b"}
    assert set(table.setting) == {"rate 0.1", "rate 0.2"}
    figure = stability.Stability().draw(table)
    assert [a.get_title() for a in figure.axes] == ["cola, a", "cola, b"]
    assert {a.get_ylabel() for a in figure.axes} == {"validation matthews"}


def test_names_of_boxes_do_not_run_into_each_other():
    shares = (0.1, 0.2, 0.2, 0.3, 0.4, 0.2)
    rates = (2e-4, 4e-4, 6e-4, 8e-4, 1e-3)
    rows = [("cola", "", rate, "houlsby_he2021", 5, *shares) for rate in rates]
    table = pd.DataFrame(rows, columns=stability.COLUMNS)
    table = table.assign(over="rate", split="test", metric="matthews")
    figure = stability.Stability().draw(table)
    figure.draw_without_rendering()
    (axes,) = figure.axes
    boxes = [t.get_window_extent() for t in axes.get_xticklabels()]
    for left, right in itertools.pairwise(boxes):
        assert left.x1 + 4 < right.x0  # Pixels; a blank is as wide.


def test_methods_have_a_panel_each_where_lengths_are_many():
    rows = [
        (f"{method}{steps}", method, steps, step, "matthews", 0.1 * step)
        for method in ("full", "houlsby")
        for steps in (0, 2000, 4000)
        for step in (1, 2)
    ]
    table = pd.DataFrame(rows, columns=curves.COLUMNS)
    figure = curves.Curves().draw(table)
    assert [axes.get_title() for axes in figure.axes] == ["full", "houlsby"]
    assert len(figure.axes[0].lines) == 3


def test_similarity_takes_the_languages_that_are_there(tmp_path, capsys):
    (tmp_path / "panx" / "ja").mkdir(parents=True)
    row = '{"tokens": ["a"], "tags": ["O"]}'
    (tmp_path / "panx" / "ja" / "dev.jsonl").write_text(row)
    config = types.SimpleNamespace(
        data=types.SimpleNamespace(data_dir=str(tmp_path))
    )
    run = types.SimpleNamespace(task=TASKS["wikiann"], config=config)
    ((language, rows),) = similarity._texts(run, ["th", "ja"])
    assert (language, len(rows)) == ("ja", 1)
    assert "has no data in th" in capsys.readouterr().out
    with pytest.raises(DataError, match="panx/th"):
        list(similarity._texts(run, ["th"]))


def test_lines_of_similarity_are_means_over_seeds():
    rows = [
        (f"run{seed}", "sst2", "", "full", seed, block, "upper", value, 100)
        for seed, values in enumerate(((0.9, 0.5), (0.7, 0.3)))
        for block, value in enumerate(values, start=1)
    ]
    table = pd.DataFrame(rows, columns=similarity.COLUMNS)
    (axes,) = similarity.Similarity().draw(table).axes
    np.testing.assert_allclose(axes.lines[0].get_ydata(), [0.8, 0.4])


def test_fusion_weights_are_means_over_seeds():
    rows = [
        ("rte", 0, "after_ffn", adapter, weight, f"run{seed}", seed)
        for seed, weights in enumerate(((0.2, 0.8), (0.4, 0.6)))
        for adapter, weight in zip(("mnli", "rte"), weights, strict=True)
    ]
    columns = [*fusion_activations.COLUMNS, "run", "seed"]
    table = pd.DataFrame(rows, columns=columns)
    figure = fusion_activations.FusionActivations().draw(table)
    (image,) = figure.axes[0].get_images()
    np.testing.assert_allclose(image.get_array(), [[0.3, 0.7]])


def _rows(**columns):
    """Returns rows of `runs.csv`: a baseline, and a method of two sizes."""
    sizes = [("full", None), ("houlsby", 8), ("houlsby", 64)]
    return [
        {
            "run": f"{method}-{units}-{seed}",
            "task": "sst2",
            "method": method,
            "seed": seed,
            "method.units": units,
            "metric": "accuracy",
            "validation": 0.5 + (units or 0) / 1000,
            "trained_weights": 100 * (units or 500),
            "head_weights": 0,
            **columns,
        }
        for method, units in sizes
        for seed in (0, 1)
    ]


def _write_rows(folder, rows):
    # The order of columns in runs.csv: state, settings, metric.
    rows = [{"run": r["run"], "state": "finished", **r} for r in rows]
    pd.DataFrame(rows).to_csv(folder / "runs.csv", index=False)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["trade_off"], "differ in `method.units`"),
        (["trade_off", "--x=method"], "differ in `method.units`"),
        (
            ["trade_off", "--sizes=method.units", "--baseline=ful"],
            "Methods of the study: full, houlsby",
        ),
        (
            ["trade_off", "--sizes=method.units", "--baseline=houlsby"],
            "`houlsby` has several points for a task",
        ),
        (
            ["improvements", "--methods=houlsby", "--baselines=full"],
            "differ in `method.units`",
        ),
        (
            ["improvements", "--methods=houlsby", "--split=test"],
            "No finished run in {} has test.",
        ),
        (["stability", "--split=test"], "No finished run in {} has test."),
        (
            ["setting_search", "--split=test", "--panels=a", "--x=b"],
            "No finished run in {} has test.",
        ),
    ],
)
def test_what_would_mislead_is_refused(tmp_path, capsys, flags, message):
    _write_rows(tmp_path, _rows(test=None))
    name, *rest = flags
    flags = [name, f"--study_dir={tmp_path}", *rest]
    assert analyse.run_analysis(flags) == 1
    assert message.format(tmp_path) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is damaged: No columns to parse"),
        ("run,task\n1,2\n", "has no column `state`"),
    ],
)
def test_a_file_that_is_no_studys_is_refused(tmp_path, capsys, text, message):
    (tmp_path / "runs.csv").write_text(text)
    assert analyse.run_analysis(["stability", f"--study_dir={tmp_path}"]) == 1
    assert message in capsys.readouterr().err


def test_a_setting_of_all_runs_is_read_from_them(tmp_path):
    """Studies may set the method or the encoder in `base`."""
    rows = [r for r in _rows() if r["method"] == "houlsby"]
    for row in rows:
        del row["method"]
    method = {"name": "bottleneck", "leave_out": [0, 1]}
    configs = {
        row["run"]: {"method": method, "encoder": "/my/minilm"} for row in rows
    }
    _write_study(tmp_path, [], configs)
    _write_rows(tmp_path, rows)
    table = _analyse("trade_off", tmp_path, "--sizes=method.units")
    assert table[["method", "x", "runs"]].values.tolist() == [
        ["bottleneck", 800, 2],
        ["bottleneck", 6400, 2],
    ]
    table = _analyse("stability", tmp_path, "--panels=encoder")
    assert set(table.panel) == {"minilm"}
    table = _analyse("stability", tmp_path, "--panels=method.leave_out")
    assert set(table.panel) == {"[0, 1]"}


@pytest.mark.parametrize(
    ("name", "flag", "count"),
    [
        ("loss_landscape", "--points", "-1"),
        ("attack", "--texts", "0"),
        ("similarity", "--tokens", "two"),
    ],
)
def test_counts_are_whole_numbers(capsys, name, flag, count):
    with pytest.raises(SystemExit):
        analyse.run_analysis([name, "--model_dir=runs/a", f"{flag}={count}"])
    message = f"`{count}` is not a whole number of at least 1"
    assert message in capsys.readouterr().err
