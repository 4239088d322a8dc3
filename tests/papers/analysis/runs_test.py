"""Tests analyses of real runs with two blocks."""

import json

import pandas as pd
import pytest

from tests import commands
from tests.papers.analysis.attack import made_up_wordnet
from tf_adapters.cli import analyse
from tf_adapters.config import resolve
from tf_adapters.papers.analysis.support import make
from tf_adapters.papers.analysis.support.analysis import ANALYSES

pytestmark = pytest.mark.integration

SETTINGS = {
    "task": "demo_sentiment",
    "encoder": commands.ENCODER_OF_TWO_BLOCKS,
    "data": {"max_train_examples": 64, "max_length": 24},
    "train": {
        "epochs": 2,
        "batch_size": 16,
        "learning_rate": 3e-2,
        "log_gradient_norms": True,
        "evaluate_loss": True,
    },
}


@pytest.fixture(scope="module")
def houlsby(tmp_path_factory):
    folder = tmp_path_factory.mktemp("houlsby") / "run"
    assert commands.run(folder, {**SETTINGS, "method": "houlsby"}) == 0
    return folder


@pytest.fixture(scope="module")
def adapter_bias(tmp_path_factory):
    folder = tmp_path_factory.mktemp("adapter_bias") / "run"
    settings = resolve.merge(SETTINGS, {"method": "adapter_bias_l0"})
    assert commands.run(folder, settings) == 0
    return folder


def _analyse(name, folder, *flags):
    assert analyse.run_analysis([name, f"--model_dir={folder}", *flags]) == 0
    assert (folder / f"{name}.png").stat().st_size > 5000
    return pd.read_csv(folder / f"{name}.csv")


def test_span_ablation(houlsby, capsys):
    table = _analyse("span_ablation", houlsby).set_index(["first", "last"])
    assert table.blocks.tolist() == ["none", "lower half", "all", "upper half"]
    assert list(table.index) == [(-1, -1), (0, 0), (0, 1), (1, 1)]
    for place, left_out in (((-1, -1), []), ((0, 1), [0, 1]), ((1, 1), [1])):
        override = [f"method.leave_out={left_out}"]
        capsys.readouterr()
        commands.run(houlsby, mode="eval", params_override=override)
        value = f"{table.value[place]:.4f}"
        assert f"validation: accuracy {value}" in capsys.readouterr().out


def test_similarity(houlsby):
    table = _analyse("similarity", houlsby, "--tokens=100")
    assert table.block.tolist() == [1, 2] and set(table.tokens) == {100}
    assert table.half.tolist() == ["lower", "upper"]
    assert ((table.similarity < 0.9999) & (table.similarity > -1)).all()


def test_attack(houlsby, tmp_path):
    """Before the attack, the accuracy on the texts equals the run's."""
    folder = made_up_wordnet.write_wordnet(tmp_path)
    flags = [f"--wordnet={folder}", "--texts=1000"]
    table = _analyse("attack", houlsby, *flags)
    result = json.loads((houlsby / "result.json").read_text())
    assert table.accuracy[0] == pytest.approx(
        result["validation"]["accuracy"], abs=1e-4
    )
    assert table.texts[0] > 50 and table.queries_per_text[0] > 10
    assert table.accuracy_under_attack[0] <= table.accuracy[0]


def test_curves(houlsby):
    table = _analyse("curves", houlsby)
    log = (houlsby / "metrics.jsonl").read_text().splitlines()
    logged = [json.loads(line) for line in log]
    expected = [r["validation"] for r in logged if "validation" in r]
    for metric in ("accuracy", "loss"):
        found = table[table.metric == metric].value.tolist()
        assert found == pytest.approx([v[metric] for v in expected], rel=1e-5)
    assert set(table.step) == {4, 8}


def test_gradient_norms(houlsby):
    table = _analyse("gradient_norms", houlsby)
    assert set(table.part) == {"block 1", "block 2", "embeddings", "head"}
    assert (table.norm > 0).all() and set(table.step) == {4, 8}


def test_loss_landscape(houlsby):
    table = _analyse("loss_landscape", houlsby, "--points=3")
    assert sorted(set(table.alpha)) == [-2, 0, 1, 2]
    train = table[table.split == "train"].set_index("alpha")
    # A head that knows nothing: the logarithm of two classes, about.
    assert train.loss[0] == pytest.approx(0.7, abs=0.15)
    assert train.loss[1] < train.loss[0] and train.distance[1] == 0
    assert train.distance[2] == -train.distance[0] > 0


def test_shift_directions(adapter_bias):
    table = _analyse("shift_directions", adapter_bias, "--texts=3")
    assert table.text.nunique() == 3 and set(table.label) == {
        "negative",
        "positive",
    }
    # Each token twice.
    assert (table.groupby(["text", "position"]).size() == 2).all()


def test_shift_agreement(adapter_bias):
    (row,) = _analyse("shift_agreement", adapter_bias).to_dict("records")
    assert row["method"] == "adapter_bias" and -1 < row["same_label"] < 1
    gap = row["same_label"] - row["different_labels"]
    assert row["gap"] == pytest.approx(gap, abs=2e-6)


def test_shift_words(adapter_bias):
    table = _analyse("shift_words", adapter_bias, "--tokens=10", "--least=2")
    assert len(table) == 10 and (table["count"] >= 2).all()
    assert table["shift"].is_monotonic_decreasing
    assert not table.token.str.startswith("[").any()


def test_what_analyses_cannot_do_is_reported(adapter_bias, capsys):
    arguments = ["shift_words", f"--model_dir={adapter_bias}", "--least=9999"]
    assert analyse.run_analysis(arguments) == 1
    assert "Lower --least" in capsys.readouterr().err


def test_token_shift(adapter_bias):
    table = _analyse("token_shift", adapter_bias)
    assert table.block.tolist() == [1, 2]
    assert table.place.tolist() == ["earlier", "last"]
    # Gates may have shut a block.
    assert table.alpha.max() > 0 and table["shift"].max() > 0


def test_gates(adapter_bias):
    table = _analyse("gates", adapter_bias).set_index("share")
    result = json.loads((adapter_bias / "result.json").read_text())
    report = result["method_report"]
    expected = pytest.approx(report["gates_open_expected"], rel=1e-5)
    assert table.open["expected"] == expected


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gates", "has no gates"),
        ("token_shift", "has no shift"),
        ("fusion_activations", "another method than fusion"),
    ],
)
def test_another_method_is_refused(name, message, houlsby, capsys):
    assert analyse.run_analysis([name, f"--model_dir={houlsby}"]) == 1
    assert message in capsys.readouterr().err


_NEEDED = {
    "gains": ["--baseline=full"],
    "setting_search": ["--panels=method.k", "--x=method.units"],
}


def test_a_folder_that_is_no_run(tmp_path, capsys):
    make.load_all()
    for name, one in ANALYSES.items():
        flag = "study_dir" if one.reads == "study_dir" else "model_dir"
        flags = _NEEDED.get(name, [])
        assert analyse.run_analysis([name, f"--{flag}={tmp_path}", *flags]) == 1
        assert capsys.readouterr().err.startswith("Error: ")


def test_svg_and_another_place(houlsby, tmp_path):
    flags = ["--format=svg", f"--output={tmp_path / 'a/b'}"]
    analyse.run_analysis(["gradient_norms", f"--model_dir={houlsby}", *flags])
    assert (tmp_path / "a/b.svg").exists() and (tmp_path / "a/b.csv").exists()
