"""Runs steps of our fusion, or of LoRA, on command, next to a peer's.

    python benchmarks/fusion_worker.py --shape=minilm --adapters=8
    python benchmarks/fusion_worker.py --shape=minilm --lora_rank=8

`fusion_speed.py` drives it through JSON lines; those in `peers` answer the same
commands.
"""

import argparse
import itertools
import json
import os
from pathlib import Path
import resource
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # As train.py does.
sys.path.insert(0, str(Path(__file__).parents[1]))

import keras_hub
import numpy as np
import tensorflow as tf

from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.config import resolve
from tf_adapters.data.batches import batch_plan
from tf_adapters.data.examples import Examples
from tf_adapters.encoders.encoder import Encoder
from tf_adapters.models.adapter_model import AdapterModel
from tf_adapters.training.distribution import make_strategy
from tf_adapters.training.trainer import Trainer

# Blocks, width, heads: MiniLM's, and BERT-base's.
SHAPES = {"minilm": (6, 384, 12), "bert_base": (12, 768, 12)}
BATCH_SIZE, TOKENS, VOCABULARY = 32, 128, 30_522


def make_trainer(shape, method, precision, remat=False, dropout=0.1):
    """Returns a `Trainer` of a method on an encoder of random weights."""
    blocks, width, num_heads = SHAPES[shape]
    config = resolve.resolve_config(
        {
            "task": "sst2",
            "method": {"name": methods.name_of(method)},
            "train": {"precision": precision},
        }
    )
    strategy = make_strategy("one_device")
    with strategy.scope():
        backbone = keras_hub.models.BertBackbone(
            vocabulary_size=VOCABULARY,
            num_layers=blocks,
            num_heads=num_heads,
            hidden_dim=width,
            intermediate_dim=4 * width,
            dtype=precision,
        )
        rates = (dropout, dropout)
        encoder = Encoder(shape, backbone, "gelu", 1e-12, *rates, True)
        head = heads.Classification(("no", "yes"))
        # Its members need no folders here: `fuse` would read them.
        model = AdapterModel(encoder, method, head, remat=remat)
    generator = np.random.default_rng(0)
    for slot in model.all_slots():
        for weight in slot.non_trainable_weights:
            weight.assign(0.02 * generator.normal(size=weight.shape))
    trainer = Trainer(
        model, strategy, config.train, config.data, config.seed, ("accuracy",)
    )
    trainer.prepare_training(10_000)
    return trainer


def make_fusion(shape, num_adapters):
    """Returns a fusion of bottlenecks of a sixteenth of the width."""
    members = tuple(f"member{n}" for n in range(num_adapters))
    return methods.Fusion(adapters=members, units=SHAPES[shape][1] // 16)


def make_examples():
    """Returns texts of random tokens that fill one batch."""
    generator = np.random.default_rng(0)
    ids = generator.integers(1_000, VOCABULARY, (BATCH_SIZE, TOKENS))
    ragged = tf.RaggedTensor.from_tensor(ids.astype("int32"))
    return Examples(
        token_ids=ragged,
        segment_ids=ragged * 0,
        targets=generator.integers(0, 2, BATCH_SIZE).astype("int32"),
        pad_id=0,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", choices=SHAPES, required=True)
    parser.add_argument("--adapters", type=int)
    parser.add_argument("--lora_rank", type=int)
    parser.add_argument("--precision", default="float32")
    arguments = parser.parse_args()
    output, sys.stdout = sys.stdout, sys.stderr
    if arguments.lora_rank:
        method = methods.LoRA(rank=arguments.lora_rank)
    else:
        method = make_fusion(arguments.shape, arguments.adapters)
    trainer = make_trainer(arguments.shape, method, arguments.precision)
    examples = make_examples()
    batch = batch_plan.Batch(np.arange(BATCH_SIZE, dtype="int32"), TOKENS)
    plan = [batch] * 5_000
    train_steps = trainer.train_loops(examples, [[batch] for batch in plan])
    eval_step, eval_batches = trainer.evaluator.evaluation(
        trainer.answers, examples, plan
    )
    print(json.dumps({"ready": True}), file=output, flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        started, used = time.perf_counter(), time.process_time()
        if command["do"] == "train":
            results = itertools.islice(train_steps, command["steps"])
        else:
            # A part of them: evaluation works ahead.
            some = itertools.islice(eval_batches, command["steps"])
            results = trainer.evaluator.eval_steps(eval_step, some)
        for result in results:
            np.asarray(result[0])  # Waits for the device.
        answer = {
            "seconds": time.perf_counter() - started,
            "processor_seconds": time.process_time() - used,
            "peak_bytes": 1024
            * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        }
        print(json.dumps(answer), file=output, flush=True)


if __name__ == "__main__":
    main()
