"""Measures one case of `gpu.py` with our models on JAX, without TensorFlow.

    python benchmarks/gpu_worker.py --device=gpu '<JSON of the case>'

Prints a line of JSON. `peers/gpu_worker.py` measures the same with PyTorch.
"""

import argparse
import json
import os
from pathlib import Path
import resource
import sys
import time

os.environ["KERAS_BACKEND"] = "jax"
sys.path.insert(0, str(Path(__file__).parents[1]))

import gpu_cases
import jax
import keras
import keras_hub
import numpy as np

from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.encoders.encoder import Encoder
from tf_adapters.models.adapter_model import AdapterModel

# JAX's names of how matrices of float32 are multiplied.
_PRODUCTS = {"float32": "float32", "tf32": "tensorfloat32", "bfloat16": None}


def make_method(name, width):
    """Returns the method of a case for an encoder of a width."""
    units = gpu_cases.units_of(name, width)
    if name == "fusion":
        members = tuple(f"m{n}" for n in range(gpu_cases.FUSED_ADAPTERS))
        return methods.Fusion(adapters=members, units=units)
    if name == "lora":
        return methods.LoRA(rank=gpu_cases.LORA_RANK)
    if name == "full":
        return methods.Full()
    kind = {"houlsby": methods.Houlsby, "pfeiffer": methods.Pfeiffer}[name]
    return kind(units=units, activation="silu")


def make_model(case, small):
    """Returns an `AdapterModel` on an encoder of random weights."""
    blocks, width, num_heads = case.sizes(small)
    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=gpu_cases.VOCABULARY,
        num_layers=blocks,
        num_heads=num_heads,
        hidden_dim=width,
        intermediate_dim=4 * width,
        dtype="mixed_bfloat16" if case.precision == "bfloat16" else "float32",
    )
    encoder = Encoder(case.shape, backbone, "gelu", 1e-12, 0.1, 0.1, True)
    method = make_method(case.method, width)
    # The members of a fusion need no folders here: `fuse` would read them.
    return AdapterModel(encoder, method, heads.Classification(("no", "yes")))


def make_batch(case):
    """Returns a batch of random tokens without padding, and its labels."""
    generator = np.random.default_rng(0)
    shape = (case.batch, case.tokens)
    inputs = {
        "token_ids": generator.integers(1_000, gpu_cases.VOCABULARY, shape),
        "segment_ids": np.zeros(shape),
        "padding_mask": np.ones(shape),
    }
    inputs = {name: value.astype("int32") for name, value in inputs.items()}
    return inputs, generator.integers(0, 2, case.batch).astype("int32")


class Steps:
    """Compiled training and inference steps of a model.

    Args:
        model: `AdapterModel`.
        batch: Inputs and labels.
    """

    def __init__(self, model, batch):
        self.model = model
        self.inputs, self.labels = jax.device_put(batch)
        model(self.inputs)  # Creates all variables.
        self.optimizer = keras.optimizers.AdamW(
            5e-5, weight_decay=0.01, epsilon=1e-8, global_clipnorm=1.0
        )
        self.optimizer.build(model.trainable_variables)
        self.state = [
            [variable.value for variable in variables]
            for variables in (
                model.trainable_variables,
                model.non_trainable_variables,
                self.optimizer.variables,
            )
        ]
        # Like Keras's `fit`, the step may reuse the memory of the old values.
        self._train = jax.jit(self._train_step, donate_argnums=(0, 2))
        self._infer = jax.jit(self._outputs)

    def _train_step(self, trained, others, slots, inputs, labels):
        def loss_of(trained):
            outputs, changed = self.model.stateless_call(
                trained, others, inputs, training=True
            )
            losses = self.model.head.loss(labels, outputs)
            return keras.ops.mean(losses), changed

        gradient = jax.value_and_grad(loss_of, has_aux=True)
        (loss, others), gradients = gradient(trained)
        trained, slots = self.optimizer.stateless_apply(
            slots, gradients, trained
        )
        return loss, [trained, others, slots]

    def _outputs(self, trained, others, inputs):
        outputs, _ = self.model.stateless_call(
            trained, others, inputs, training=False
        )
        return outputs.argmax(-1)

    def train(self, steps):
        """Takes training steps, and returns the last loss."""
        for _ in range(steps):
            loss, self.state = self._train(
                *self.state, self.inputs, self.labels
            )
        return float(loss)

    def infer(self, steps):
        """Computes the answers of a batch several times."""
        trained, others, _ = self.state
        for _ in range(steps):
            answers = self._infer(trained, others, self.inputs)
        return np.asarray(answers)


def peak_bytes():
    """Returns the most memory in use so far: the device's, or the process's."""
    stats = jax.devices()[0].memory_stats()
    if stats:
        return stats["peak_bytes_in_use"]
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def seconds_of(run, steps, turns):
    """Returns seconds a step of each turn, after one that compiles."""
    run(1)
    seconds = []
    for _ in range(turns):
        started = time.perf_counter()
        run(steps)  # Waits for the device at its end.
        seconds.append((time.perf_counter() - started) / steps)
    return seconds


def measure(case, small, steps, turns):
    """Returns what one case takes, as a dict of seconds, bytes and names."""
    jax.config.update("jax_default_matmul_precision", _PRODUCTS[case.precision])
    runs = Steps(make_model(case, small), make_batch(case))
    infer = seconds_of(runs.infer, steps, turns)
    train = seconds_of(runs.train, steps, turns)
    return {
        "train": train,
        "infer": infer,
        "peak_bytes": peak_bytes(),
        "device": jax.devices()[0].device_kind,
        "versions": {"jax": jax.__version__, "keras": keras.__version__},
        "loss": runs.train(1),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("case", help="JSON of a `gpu_cases.Case`.")
    parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--turns", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.device == "cpu":
        jax.config.update("jax_platforms", "cpu")
    elif jax.default_backend() == "cpu":
        sys.exit("JAX finds no GPU. Install jax[cuda12], or give --device=cpu.")
    case = gpu_cases.Case(**json.loads(arguments.case))
    answer = measure(case, arguments.small, arguments.steps, arguments.turns)
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
