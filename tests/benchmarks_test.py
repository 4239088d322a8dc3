"""Tests that the scripts in `benchmarks` start; a full run takes hours."""

import importlib.util
import itertools
import json
import os
from pathlib import Path
import runpy
import subprocess
import sys
from unittest import mock

import numpy as np
import pytest

from tests import commands
from tf_adapters.common.errors import Stopped
from tf_adapters.common.errors import UserError

pytestmark = pytest.mark.integration

FOLDER = Path(__file__).parents[1] / "benchmarks"
# Scripts in `peers` need PyTorch; these others are not commands.
MODULES = {
    *("bench_page.py", "first_step.py", "gpu_cases.py", "load_adapters.py"),
    *(
        "load_clients.py",
        "load_servers.py",
        "machine.py",
        "measurements.py",
        "peer_rows.py",
    ),
    *("scale_formulas.py", "small_server.py", "suite.py", "worker.py"),
}
SCRIPTS = sorted({path.name for path in FOLDER.glob("*.py")} - MODULES)


@pytest.mark.parametrize("name", SCRIPTS)
def test_it_says_how_it_is_used(name, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    monkeypatch.syspath_prepend(FOLDER)
    # A script may choose Keras's backend, for its own process.
    with mock.patch.dict(os.environ), pytest.raises(SystemExit) as ended:
        runpy.run_path(str(FOLDER / name), run_name="__main__")
    assert ended.value.code == 0
    assert f"usage: {name}" in capsys.readouterr().out


def _masked_lm_head(monkeypatch, *flags):
    """Returns the script as a module, with flags for its `main`."""
    monkeypatch.setattr(sys, "argv", ["masked_lm_head.py", *map(str, flags)])
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("masked_lm_head")


def test_a_head_is_trained_for_a_bert_only(tmp_path, monkeypatch):
    """It is said before the training, which takes an hour."""
    (tmp_path / "config.json").write_text('{"model_type": "roberta"}')
    flags = [f"--encoder={tmp_path}", f"--output={tmp_path / 'new'}"]
    script = _masked_lm_head(monkeypatch, *flags, f"--data_dir={tmp_path}")
    with pytest.raises(UserError, match="Received a `model_type`: roberta"):
        script.main()


def test_a_head_of_a_version_trains_in_a_folder_of_its_own(
    tmp_path, monkeypatch
):
    seen = []
    flags = [f"--output={tmp_path / 'minilm-2.1'}", "--data_dir=none"]
    script = _masked_lm_head(monkeypatch, *flags)
    monkeypatch.setattr(script, "find_bert", Path, raising=False)
    monkeypatch.setattr(script, "texts_of", lambda *_: [])
    monkeypatch.setattr(script, "write_task", lambda _, path: seen.append(path))
    monkeypatch.setattr(script, "train", mock.Mock(side_effect=Stopped))
    with pytest.raises(Stopped):
        script.main()
    assert seen == [tmp_path / "minilm-2.1.training"]


def test_the_fusion_that_is_timed_trains_and_answers(monkeypatch):
    path = FOLDER / "fusion_worker.py"
    spec = importlib.util.spec_from_file_location("fusion_worker", path)
    worker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(worker)
    monkeypatch.setitem(worker.SHAPES, "tiny", (1, 16, 2))
    monkeypatch.setattr(worker, "BATCH_SIZE", 2)
    monkeypatch.setattr(worker, "TOKENS", 4)
    method = worker.make_fusion("tiny", 3)
    trainer = worker.make_trainer("tiny", method, "float32")
    assert trainer.model.slots[0]["after_ffn"].fusion.num_adapters == 3
    batch = worker.batch_plan.Batch(np.arange(2, dtype="int32"), 4)
    examples = worker.make_examples()
    ((losses, _),) = trainer.train_loops(examples, [[batch]])
    assert np.isfinite(losses).all()
    step, batches = trainer.evaluator.evaluation(
        trainer.answers, examples, [batch]
    )
    some = itertools.islice(batches, 1)
    assert len(list(trainer.evaluator.eval_steps(step, some))) == 1


@pytest.mark.slow
def test_the_training_that_is_timed_trains_and_answers(tmp_path, monkeypatch):
    rows = [{"sentence": f"film {n}", "label": n % 2} for n in range(8)]
    for split in ("train", "validation", "test"):
        commands.write_rows(tmp_path / "sst2" / f"{split}.jsonl", rows)
    monkeypatch.syspath_prepend(FOLDER)
    throughput = importlib.import_module("train_throughput")
    monkeypatch.setattr(throughput, "BATCH_SIZE", 4)
    ours = throughput.Ours("sst2", str(tmp_path), "float32", 8)
    assert ours.do("train", 2) > 0
    assert ours.do("infer", 2) > 0


@pytest.mark.slow
def test_the_files_that_are_timed_answer(tmp_path, monkeypatch, capsys):
    formats = ("saved_model", "onnx_int8", "openvino_int8", "litert_int8")
    arguments = [f"--formats={','.join(formats)}", "--turns=1"]
    arguments += ["--encoder", commands.ENCODER_OF_TWO_BLOCKS]
    arguments += ["--lengths", "8", "16"]
    name = "deployment_speed.py"
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    monkeypatch.syspath_prepend(FOLDER)
    runpy.run_path(str(FOLDER / name), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    rows = [line.split(" | ") for line in lines if line.startswith("| ")][1:]
    assert [row[0] for row in rows] == [f"| {name}" for name in formats]
    # Megabytes of so small a file, and the seconds to load it, may be 0.0.
    timed = [cell for row in rows for cell in row[3:6]]
    assert all(float(cell.split()[0]) > 0 for cell in timed)


_WITHOUT_TENSORFLOW = """
import runpy, sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("tensorflow", "tensorflow_text"):
            raise ImportError(f"{name} is refused")

sys.meta_path.insert(0, Refuse())
sys.argv = sys.argv[1:]
sys.path.insert(0, str(__import__("pathlib").Path(sys.argv[0]).parent))
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.slow
def test_gpus_are_measured_without_tensorflow():
    pytest.importorskip("jax")
    case = {"shape": "bert_base", "method": "houlsby", "tokens": 8, "batch": 4}
    case = json.dumps({**case, "precision": "bfloat16"})
    script = str(FOLDER / "gpu_worker.py")
    options = ["--device=cpu", "--small", "--steps=1", "--turns=1", case]
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_TENSORFLOW, script, *options],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["peak_bytes"] > 0 and answer["loss"] > 0
    assert all(answer[what][0] > 0 for what in ("train", "infer"))


def test_the_operations_of_bert_base_are_counted(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    cases = importlib.import_module("gpu_cases")
    case = cases.Case("bert_base", "full", "bfloat16", 128, 1)
    forward = cases.operations(case, small=False, trains=False)
    # 22.4 GFLOP for a text of 128 tokens, by NVIDIA's demo/BERT.
    assert forward == pytest.approx(22.4e9, rel=0.01)
    assert cases.operations(case, small=False, trains=True) == 3 * forward
    frozen = cases.Case("bert_base", "lora", "bfloat16", 128, 1)
    assert cases.operations(frozen, small=False, trains=True) == 2 * forward
