"""Compares mean weights of a fusion with an average over single tokens."""

from pathlib import Path
import types

import numpy as np
import pandas as pd
import pytest

from tests import tiny
from tf_adapters import methods
from tf_adapters.cli import analyse
from tf_adapters.common import adapter_folder
from tf_adapters.data.rows import splits
from tf_adapters.interop import stored_adapter
from tf_adapters.interop.stored_adapter import StoredAdapter
from tf_adapters.models.adapter_model import AdapterModel
from tf_adapters.papers.analysis import fusion_activations

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def model():
    method = methods.Fusion(adapters=("a", "b", "c"), units=4)
    model = AdapterModel(tiny.encoder(), method)
    for block in model.slots:
        for slot in block.values():
            tiny.randomize(slot.weights)
    return model


def test_mean_is_over_tokens_and_leaves_padding_out(model):
    batches = [
        tiny.batch(model.encoder_info, size=3, seed=0),
        tiny.batch(model.encoder_info, size=2, tokens=5, seed=1),
    ]
    means = fusion_activations.mean_weights(model, batches)
    assert set(means) == {(0, "after_ffn"), (1, "after_ffn")}
    seen = []
    for batch in batches:
        for row in range(len(batch["token_ids"])):
            length = batch["padding_mask"][row].sum()
            alone = {k: v[row : row + 1, :length] for k, v in batch.items()}
            probes = model.encoder(alone, return_probes=True)["probes"]
            seen.append(np.asarray(probes[1]["after_ffn"]["fusion_weights"])[0])
    expected = np.concatenate(seen).mean(0)
    assert expected.std() > 0.01
    np.testing.assert_allclose(means[1, "after_ffn"], expected, atol=1e-5)


def test_table_and_picture():
    weights = {
        "rte": {(0, "after_ffn"): np.array([0.9, 0.1])},
        "cb": {(0, "after_ffn"): np.array([0.25, 0.75])},
    }
    members = {"rte": ["mnli", "rte"], "cb": ["mnli", "cb"]}
    rows = fusion_activations.weight_rows(weights, members)
    assert rows[0] == ("rte", 0, "after_ffn", "mnli", 0.9)
    assert rows[3] == ("cb", 0, "after_ffn", "cb", 0.75)
    table = pd.DataFrame(rows, columns=fusion_activations.COLUMNS)
    figure = fusion_activations.FusionActivations().draw(table)
    (image,) = figure.axes[0].get_images()
    # Tasks by adapters, in the order in which they come.
    expected = [[0.9, 0.1, np.nan], [0.25, np.nan, 0.75]]
    np.testing.assert_array_equal(image.get_array().filled(np.nan), expected)


def test_a_run_of_another_method_is_refused(tmp_path, monkeypatch, capsys):
    (tmp_path / "config.yaml").write_text("task: sst2\nmethod: bitfit\n")
    monkeypatch.setattr(splits, "load_rows", lambda *_: {})
    arguments = ["fusion_activations", f"--model_dir={tmp_path}"]
    assert analyse.run_analysis(arguments) == 1
    assert "another method than fusion" in capsys.readouterr().err


def test_choices_count_token_by_token(model):
    """Each is a sequence of its own; one without tokens does not count."""
    batch = tiny.batch(model.encoder_info, size=4, seed=2)
    for array in batch.values():
        array[3] = 0
    choices = {k: v.reshape(2, 2, -1) for k, v in batch.items()}
    alone = {k: v[:3] for k, v in batch.items()}
    means, expected = (
        fusion_activations.mean_weights(model, [features])
        for features in (choices, alone)
    )
    np.testing.assert_allclose(
        means[0, "after_ffn"], expected[0, "after_ffn"], atol=1e-6
    )


def test_adapters_go_by_their_tasks_where_these_differ(monkeypatch):
    members = [
        types.SimpleNamespace(name=name, folder=folder)
        for name, folder in (("rte-1", "x"), ("cb-2", "y"))
    ]
    tasks = {"x": "rte", "y": "cb"}

    def find_stored(folder):
        format = "tf_adapters" if folder in tasks else "adapterhub"
        config = {"details": {"task": tasks.get(folder)}}
        return StoredAdapter(folder, Path(folder), format, config)

    monkeypatch.setattr(stored_adapter, "find_stored", find_stored)
    monkeypatch.setattr(
        adapter_folder, "read_adapter_config", lambda path, parsed: parsed
    )
    assert fusion_activations._labels(members) == ["rte", "cb"]
    tasks["y"] = "rte"
    assert fusion_activations._labels(members) == ["rte-1", "cb-2"]
    del tasks["y"]
    assert fusion_activations._labels(members) == ["rte-1", "cb-2"]


def test_seeds_go_by_their_task_and_other_runs_by_their_folders(
    model, monkeypatch
):
    seeds = {"a": 0, "b": 0, "c": 1}

    def load(folder):
        run = types.SimpleNamespace(
            task=types.SimpleNamespace(name="rte"),
            config=types.SimpleNamespace(seed=seeds[folder]),
            rows={"validation": []},
        )
        return run, types.SimpleNamespace(model=model)

    weights = {(0, "after_ffn"): np.array([0.5, 0.3, 0.2])}
    monkeypatch.setattr(fusion_activations, "load_fusion", load)
    monkeypatch.setattr(fusion_activations, "of_experiment", lambda *_: weights)
    monkeypatch.setattr(
        fusion_activations, "_labels", lambda _: ["x", "y", "z"]
    )
    both = fusion_activations._of_runs(["a", "c"])
    assert set(both.task) == {"rte"} and set(both.seed) == {0, 1}
    assert set(fusion_activations._of_runs(["a", "b"]).task) == {"a", "b"}
