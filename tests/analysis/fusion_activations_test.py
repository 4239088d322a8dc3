"""Mean weights of a fusion against an average over single tokens."""

import numpy as np
import pytest

from tests import tiny
from tf_adapters import methods
from tf_adapters.analysis import fusion_activations
from tf_adapters.model import adapt


@pytest.fixture(scope="module")
def model():
    method = methods.Fusion(adapters=("a", "b", "c"), units=4)
    model = adapt(tiny.encoder(), method)
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


def test_table_and_picture(tmp_path):
    weights = {
        "rte": {(0, "after_ffn"): np.array([0.9, 0.1])},
        "cb": {(0, "after_ffn"): np.array([0.25, 0.75])},
    }
    members = {"rte": ["mnli", "rte"], "cb": ["mnli", "cb"]}
    rows = fusion_activations.table(weights, members)
    assert rows[0] == ("rte", 0, "after_ffn", "mnli", 0.9)
    assert rows[3] == ("cb", 0, "after_ffn", "cb", 0.75)
    fusion_activations.plot(rows, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 5000


def test_a_run_of_another_method_is_refused(tmp_path):
    (tmp_path / "config.yaml").write_text("task: sst2\nmethod: bitfit\n")
    with pytest.raises(SystemExit, match="another method than fusion"):
        fusion_activations.main([f"--model_dir={tmp_path}"])
