"""Tests that runs of methods with additional state resume bit for bit."""

import pytest

from tests.runs import whole_runs
from tf_adapters.common.errors import Stopped
from tf_adapters.config import resolve
from tf_adapters.runs import task_data
from tf_adapters.runs import training_run

pytestmark = pytest.mark.slow
# A mask that is fixed half way, weights to mix with, gates, a scaled product,
# blocks that are computed once.
METHODS = ("diff_pruning", "mixout", "adapter_bias_l0", "lora", "top_layers")


def _train(folder, method):
    layer = {"method": method, "train": {"checkpoint_seconds": 1000.0}}
    if method == "diff_pruning":
        # The preset's rate of the gates, at this rate of the differences.
        layer["method"] = {
            "name": method,
            "gate_learning_rate_multiplier": 3.0,
            "share": 0.05,
        }
    if method == "top_layers":
        layer["method"] = {"name": method, "k": 1}
        layer["train"]["encoder_dropout"] = False
    config = resolve.resolve_config(whole_runs.SETTINGS, layer)
    data = task_data.load_task_data(config)
    return training_run.train_experiment(config, data, folder)


@pytest.mark.parametrize("method", METHODS)
def test_it_goes_on_before_and_after_its_middle(method, tmp_path, monkeypatch):
    whole = _train(tmp_path / "whole", method)
    for step in (6, 21):
        with monkeypatch.context() as patch:
            whole_runs.stop_at(patch, step)
            with pytest.raises(Stopped, match=f"after step {step}"):
                _train(tmp_path / "run", method)
    result = _train(tmp_path / "run", method)
    whole_runs.check_equal(tmp_path / "run", tmp_path / "whole")
    assert result.get("method_report") == whole.get("method_report")
