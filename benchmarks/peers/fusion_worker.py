"""Runs steps of the `adapters` library's fusion, or of PEFT's LoRA, on command.

    python benchmarks/peers/fusion_worker.py --shape=minilm --adapters=8
    python benchmarks/peers/fusion_worker.py --shape=minilm --lora_rank=8

The same shapes, batch, head, optimizer and commands as `../fusion_worker.py`.
The library's trainer adds the regularizer's gradient after the step; here it
joins the loss, which costs the same.
"""

import argparse
import json
import os
import resource
import sys
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import adapters
from adapters import SeqBnConfig
from adapters.composition import Fuse
import peer_model
import peft
import torch
import transformers

SHAPES = {"minilm": (6, 384, 12), "bert_base": (12, 768, 12)}
BATCH_SIZE, TOKENS, VOCABULARY = 32, 128, 30_522
LEARNING_RATE = 5e-5


def make_encoder(shape):
    """Returns a BERT of random weights."""
    blocks, width, num_heads = SHAPES[shape]
    config = transformers.BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=width,
        num_hidden_layers=blocks,
        num_attention_heads=num_heads,
        intermediate_size=4 * width,
        attn_implementation="sdpa",
    )
    return transformers.BertModel(config, add_pooling_layer=False)


def make_lora(shape, rank):
    """Returns a classifier over PEFT's LoRA on query and value."""
    config = peft.LoraConfig(
        r=rank, lora_alpha=rank, target_modules=["query", "value"]
    )
    encoder = peft.get_peft_model(make_encoder(shape), config)
    return peer_model.Classifier(encoder, 2)


def make_fusion(shape, num_adapters):
    """Returns a classifier over a fusion of random adapters."""
    encoder = make_encoder(shape)
    adapters.init(encoder)
    names = [f"member{n}" for n in range(num_adapters)]
    for name in names:
        encoder.add_adapter(name, config=SeqBnConfig(reduction_factor=16))
    fuse = Fuse(*names)
    encoder.add_adapter_fusion(fuse)
    encoder.train_adapter_fusion(fuse)
    encoder.active_adapters = fuse
    return peer_model.Classifier(encoder, 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", choices=SHAPES, required=True)
    parser.add_argument("--adapters", type=int)
    parser.add_argument("--lora_rank", type=int)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    output, sys.stdout = sys.stdout, sys.stderr
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    is_fusion = not arguments.lora_rank
    if is_fusion:
        model = make_fusion(arguments.shape, arguments.adapters)
    else:
        model = make_lora(arguments.shape, arguments.lora_rank)
    optimizer = peer_model.make_optimizer(model, LEARNING_RATE)
    inputs = {
        "input_ids": torch.randint(1_000, VOCABULARY, (BATCH_SIZE, TOKENS)),
        "attention_mask": torch.ones(BATCH_SIZE, TOKENS, dtype=torch.long),
    }
    labels = torch.randint(0, 2, (BATCH_SIZE,))

    def train():
        model.train()
        loss = torch.nn.functional.cross_entropy(model(**inputs), labels)
        if is_fusion:
            loss = loss + model.encoder.get_fusion_regularization_loss()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        peer_model.clip_gradients(model)
        optimizer.step()

    def infer():
        model.eval()
        with torch.inference_mode():
            model(**inputs).argmax(-1).numpy()

    print(json.dumps({"ready": True}), file=output, flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        step = {"train": train, "infer": infer}[command["do"]]
        started = time.perf_counter()
        for _ in range(command["steps"]):
            step()
        answer = {
            "seconds": time.perf_counter() - started,
            "peak_bytes": 1024
            * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        }
        print(json.dumps(answer), file=output, flush=True)


if __name__ == "__main__":
    main()
