"""Measures one case of `../gpu.py` with PyTorch: `adapters`, PEFT, or neither.

    python benchmarks/peers/gpu_worker.py --device=gpu '<JSON of the case>'
    python benchmarks/peers/gpu_worker.py --compile '<JSON of the case>'

Prints a line of JSON, as `../gpu_worker.py` does. LoRA is PEFT's, the other
adapters and the fusion are those of the `adapters` library, and `full` is
transformers alone.
"""

import argparse
import contextlib
import json
import logging
import os
from pathlib import Path
import resource
import sys
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

import adapters
from adapters import SeqBnConfig
from adapters.composition import Fuse
import gpu_cases
import peer_model
import peft
import torch
import transformers

# What `torch.set_float32_matmul_precision` calls it.
_PRODUCTS = {"float32": "highest", "tf32": "high", "bfloat16": "highest"}


def make_encoder(case, small):
    """Returns a BERT of random weights."""
    blocks, width, num_heads = case.sizes(small)
    config = transformers.BertConfig(
        vocab_size=gpu_cases.VOCABULARY,
        hidden_size=width,
        num_hidden_layers=blocks,
        num_attention_heads=num_heads,
        intermediate_size=4 * width,
        attn_implementation="sdpa",
    )
    return transformers.BertModel(config, add_pooling_layer=False)


def with_method(encoder, method):
    """Returns the encoder with what a method adds, and the rest frozen."""
    width = encoder.config.hidden_size
    if method == "full":
        return encoder
    if method == "lora":
        rank = gpu_cases.LORA_RANK
        config = peft.LoraConfig(
            r=rank, lora_alpha=rank, target_modules=["query", "value"]
        )
        return peft.get_peft_model(encoder, config)
    adapters.init(encoder)
    kind = peer_model.CONFIGS.get(method, SeqBnConfig)
    units = gpu_cases.units_of(method, width)
    # The library takes int(width // factor) units: half a unit more keeps
    # rounding from taking one away.
    config = kind(reduction_factor=width / (units + 0.5))
    if method != "fusion":
        encoder.add_adapter("task", config=config)
        encoder.train_adapter("task")
        return encoder
    names = [f"member{n}" for n in range(gpu_cases.FUSED_ADAPTERS)]
    for name in names:
        encoder.add_adapter(name, config=config)
    encoder.add_adapter_fusion(Fuse(*names))
    encoder.train_adapter_fusion(Fuse(*names))
    return encoder


class Steps:
    """Training and inference steps of a case.

    Args:
        case: `gpu_cases.Case`.
        arguments: `small`, `compile` and `device` of the command line.
    """

    def __init__(self, case, arguments):
        self.device = "cuda" if arguments.device == "gpu" else "cpu"
        torch.manual_seed(0)
        encoder = with_method(make_encoder(case, arguments.small), case.method)
        self.model = peer_model.Classifier(encoder, 2).to(self.device)
        if case.method in ("houlsby", "full"):
            for name, weight in self.model.named_parameters():
                # Houlsby et al. train every norm.
                if "LayerNorm" in name:
                    weight.requires_grad_(True)
        self.adds_penalty = case.method == "fusion"
        self.optimizer = peer_model.make_optimizer(self.model, 5e-5)
        self.called = self.model
        if arguments.compile:
            self.called = torch.compile(self.model)
        shape = (case.batch, case.tokens)
        ids = torch.randint(1_000, gpu_cases.VOCABULARY, shape)
        self.inputs = {
            "input_ids": ids.to(self.device),
            "attention_mask": torch.ones_like(ids).to(self.device),
        }
        self.labels = torch.randint(0, 2, shape[:1]).to(self.device)
        self.precision = case.precision

    def _outputs(self):
        context = contextlib.nullcontext()
        if self.precision == "bfloat16":
            context = torch.autocast(self.device, torch.bfloat16)
        with context:
            return self.called(**self.inputs)

    def train(self, steps):
        """Takes training steps, and returns the last loss."""
        self.model.train()
        for _ in range(steps):
            loss = torch.nn.functional.cross_entropy(
                self._outputs(), self.labels
            )
            if self.adds_penalty:
                fusion = self.model.encoder
                loss = loss + fusion.get_fusion_regularization_loss()
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            peer_model.clip_gradients(self.model)
            self.optimizer.step()
        return loss.item()

    def infer(self, steps):
        """Computes the answers of a batch several times."""
        self.model.eval()
        with torch.inference_mode():
            for _ in range(steps):
                answers = self._outputs().argmax(-1)
        return answers.cpu().numpy()


def peak_bytes(device):
    """Returns the most memory in use so far: the device's, or the process's."""
    if device == "cuda":
        return torch.cuda.max_memory_allocated()
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def seconds_of(run, steps, turns):
    """Returns seconds a step of each turn, after some that compile."""
    run(3)
    seconds = []
    for _ in range(turns):
        started = time.perf_counter()
        run(steps)  # Waits for the device at its end.
        seconds.append((time.perf_counter() - started) / steps)
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("case", help="JSON of a `gpu_cases.Case`.")
    parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--turns", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.device == "gpu" and not torch.cuda.is_available():
        sys.exit("PyTorch finds no GPU. Install its CUDA build.")
    logging.getLogger("adapters").setLevel(logging.ERROR)
    case = gpu_cases.Case(**json.loads(arguments.case))
    torch.set_float32_matmul_precision(_PRODUCTS[case.precision])
    runs = Steps(case, arguments)
    infer = seconds_of(runs.infer, arguments.steps, arguments.turns)
    train = seconds_of(runs.train, arguments.steps, arguments.turns)
    is_gpu = runs.device == "cuda"
    answer = {
        "train": train,
        "infer": infer,
        "peak_bytes": peak_bytes(runs.device),
        "device": torch.cuda.get_device_name() if is_gpu else "cpu",
        "versions": {
            "torch": torch.__version__,
            "adapters": adapters.__version__,
            "peft": peft.__version__,
            "transformers": transformers.__version__,
        },
        "loss": runs.train(1),
    }
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
