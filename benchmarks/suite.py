"""The benchmarks that `bench.py` runs, and the goals of their numbers."""

import dataclasses
import importlib.util
from pathlib import Path


@dataclasses.dataclass(frozen=True)
class Benchmark:
    """A script of this folder with its options.

    Attributes:
        title: Heading in the page of numbers.
        script: File name. The script writes rows with `--output`; see
            `measurements.py`.
        options: Options of the script. `{data_dir}` and `{peer_python}` stand
            for the options of `bench.py`.
        needs: Those of `"data_dir"` and `"peer_python"` without which the
            script cannot run.
        packages: Names of optional packages that the script imports.
        goals: Tuple of pairs `(text, ratio)`: rows whose case contains the
            text are to be at least `ratio` times as good as what they are
            compared with.
    """

    title: str
    script: str
    options: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    goals: tuple[tuple[str, float], ...] = ()

    def goal_of(self, case):
        """Returns the ratio that a case should reach, or `None`."""
        found = [ratio for text, ratio in self.goals if text in case]
        return found[0] if found else None

    def takes_peer(self):
        """Returns whether the script can compare with PyTorch."""
        return any("{peer_python}" in option for option in self.options)

    def missing(self, arguments):
        """Returns a sentence that says what is missing, or `None`.

        Args:
            arguments: Arguments of the command line of `bench.py`.
        """
        for option in self.needs:
            if not getattr(arguments, option):
                return f"It needs --{option}."
        if "data_dir" in self.needs and not Path(arguments.data_dir).is_dir():
            return f"It needs data. There is no folder {arguments.data_dir}."
        for package in self.packages:
            if importlib.util.find_spec(package) is None:
                return f"It needs the package {package}."
        return None

    def arguments_of(self, arguments):
        """Returns the script's options, with the values of `bench.py`'s."""
        values = {
            name: getattr(arguments, name) or ""
            for name in ("data_dir", "peer_python")
        }
        return [option.format(**values) for option in self.options]


_PEER = "--peer_python={peer_python}"
_TRAINING = ("--data_dir={data_dir}", _PEER, "--examples=320")
BENCHMARKS = {
    "training": Benchmark(
        "Training and inference, float32",
        "train_throughput.py",
        (*_TRAINING, "--precisions=float32"),
        needs=("data_dir", "peer_python"),
    ),
    "training_bfloat16": Benchmark(
        "Training and inference, bfloat16",
        "train_throughput.py",
        (*_TRAINING, "--precisions=mixed_bfloat16"),
        needs=("data_dir", "peer_python"),
        goals=(("batches grouped", 1.2),),
    ),
    "lora": Benchmark(
        "LoRA",
        "fusion_speed.py",
        (_PEER, "--shapes=minilm", "--lora_ranks=8"),
        needs=("peer_python",),
        goals=(("memory", 1.0),),
    ),
    "fusion": Benchmark(
        "AdapterFusion",
        "fusion_speed.py",
        (_PEER, "--shapes=minilm", "--adapters=1,8,16", "--turns=3"),
        needs=("peer_python",),
    ),
    "memory": Benchmark(
        "Peak memory of training steps of BERT-base",
        "peak_memory.py",
        (_PEER,),
        # First those of `train.remat`: the cases have a method's name, too.
        goals=(("remat", 2.0), ("", 1.0)),
    ),
    "frozen_blocks": Benchmark(
        "Training behind frozen blocks that are computed once",
        "frozen_blocks.py",
        ("--shape=minilm", "--trained=1"),
    ),
    "starting": Benchmark(
        "From the start of a command to its answer",
        "starting.py",
        goals=(("predict", 1 / 1.3), ("train", 1 / 1.3)),
    ),
    "bank": Benchmark(
        "Batches that mix the adapters of a bank",
        "bank_speed.py",
        ("--tokens=32", "--turns=3"),
    ),
    "serving": Benchmark(
        "One SavedModel for many tasks", "serving_speed.py", ("--tasks=4,16",)
    ),
    "server": Benchmark(
        "The live server",
        "serving_load.py",
        ("--adapters=8,1000", "--seconds=3", "--turns=3"),
        packages=("ray", "fastapi"),
    ),
    "deployment": Benchmark(
        "Exported files",
        "deployment_speed.py",
        (_PEER,),
        packages=("onnx", "onnxruntime", "openvino", "ai_edge_litert"),
    ),
}
