"""Runs steps of the `adapters` library on command, to be timed against ours.

    python benchmarks/peers/adapters_throughput.py --encoder=<folder> \
        --texts=texts.jsonl --precision=bfloat16 --group_by_length

Another process drives it through JSON lines. It prints one line when it is
ready, reads commands from its input, and answers each with one line:

    {"do": "train", "steps": 5}  {"do": "infer", "steps": 5}  {"do": "quit"}
    {"seconds": 1.9, "examples": 160, "tokens": 3811, "padded_tokens": 4020}

It waits without using a core, so two workers can be measured alternately in
one call. A step goes on where the last one stopped in an endless plan of
batches; training and inference have a plan each. `seconds` covers padding the
batch, forward, and in training loss, backward, clipping and AdamW.

Defaults: attention by `scaled_dot_product_attention`, no compilation
(`--compile` adds it); `README.md` here says what was measured. In bfloat16,
training runs under autocast with the frozen matrices stored in bfloat16, so
that no step casts them again, and trained weights in float32; inference runs
a model stored in bfloat16.
"""

import argparse
import json
import os
import sys
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # Everything is read from disk.

import adapters
import numpy as np
import peer_data
import peer_model
import torch
import transformers

LEARNING_RATE = 5e-4


def parse_arguments():
    """Returns the command line's arguments."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--encoder", required=True, help="Hugging Face folder")
    parser.add_argument("--texts", required=True, help="JSONL file")
    parser.add_argument(
        "--method", choices=peer_model.METHODS, default="houlsby"
    )
    parser.add_argument("--units", type=int, default=64)
    parser.add_argument("--activation", default="swish")
    parser.add_argument(
        "--train_layer_norms",
        action=argparse.BooleanOptionalAction,
        default=True,
    )
    parser.add_argument(
        "--precision", choices=("float32", "bfloat16"), default="float32"
    )
    parser.add_argument("--group_by_length", action="store_true")
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--max_length", type=int, default=128)
    parser.add_argument("--max_examples", type=int, help="the first n")
    parser.add_argument(
        "--attention", choices=("sdpa", "eager"), default="sdpa"
    )
    parser.add_argument(
        "--compile",
        action="store_true",
        help="torch.compile; the first steps take minutes, warm up",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


class Plan:
    """An endless sequence of batches over the same examples."""

    def __init__(self, examples, group_by_length, batch_size, seed):
        self.examples = examples
        self.batch_size = batch_size
        self.seed = seed
        self.make_batches = (
            peer_data.grouped_batches
            if group_by_length
            else peer_data.random_batches
        )
        self.batches = self._endless()

    def _endless(self):
        lengths = [len(example["ids"]) for example in self.examples]
        epoch = 0
        while True:
            rng = np.random.default_rng((self.seed, epoch))
            yield from self.make_batches(lengths, self.batch_size, rng)
            epoch += 1

    def next_examples(self):
        """Returns the examples of the next batch."""
        return [self.examples[i] for i in next(self.batches)]


class Trainer:
    """Training steps; `step` takes a collated batch."""

    def __init__(self, model, precision):
        self.model = model.train()
        self.optimizer = peer_model.make_optimizer(model, LEARNING_RATE)
        self.autocast = precision == "bfloat16"
        if self.autocast:
            store_frozen_matrices_in_bfloat16(model)

    def step(self, inputs, labels):
        """Runs one training step."""
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.autocast):
            logits = self.model(**inputs)
        loss = torch.nn.functional.cross_entropy(logits, labels)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        peer_model.clip_gradients(self.model)
        self.optimizer.step()


class Predictor:
    """Inference steps; `step` takes a collated batch."""

    def __init__(self, model, precision):
        self.model = model.eval()
        if precision == "bfloat16":
            self.model = self.model.bfloat16()

    def step(self, inputs, _):
        """Returns the classes of one batch."""
        with torch.inference_mode():
            return self.model(**inputs).argmax(-1).numpy()


def store_frozen_matrices_in_bfloat16(model):
    """Casts the weights of linear layers that do not train."""
    for module in model.modules():
        if isinstance(module, torch.nn.Linear):
            for parameter in module.parameters():
                if not parameter.requires_grad:
                    parameter.data = parameter.data.bfloat16()


def run_steps(runner, plan, steps, pad_token_id):
    """Runs steps and returns how long they took and what they did."""
    counts = {"examples": 0, "tokens": 0, "padded_tokens": 0}
    start = time.perf_counter()
    for _ in range(steps):
        examples = plan.next_examples()
        inputs, labels = peer_data.collate(examples, pad_token_id)
        runner.step(inputs, labels)
        counts["examples"] += len(examples)
        counts["tokens"] += int(inputs["attention_mask"].sum())
        counts["padded_tokens"] += inputs["input_ids"].numel()
    return {"seconds": time.perf_counter() - start, **counts}


def make_runners(arguments, num_classes):
    """Returns a trainer and a predictor, each with a model of its own."""
    models = [
        peer_model.build(
            arguments.encoder,
            num_classes,
            arguments.method,
            arguments.units,
            arguments.activation,
            arguments.train_layer_norms,
            arguments.attention,
        )
        for _ in range(2)
    ]
    runners = {
        "train": Trainer(models[0], arguments.precision),
        "infer": Predictor(models[1], arguments.precision),
    }
    if arguments.compile:
        for runner in runners.values():
            runner.model = torch.compile(runner.model, dynamic=True)
    return runners


def serve(runners, plans, pad_token_id, output):
    """Answers commands, one line each, until `quit` or the input's end."""
    for line in sys.stdin:
        command = json.loads(line)
        name = command.get("do")
        if name == "quit":
            return
        if name in runners:
            answer = run_steps(
                runners[name], plans[name], command["steps"], pad_token_id
            )
        else:
            answer = {
                "error": f"Unknown command {line.strip()}. Use `do`: "
                "`train` or `infer` with `steps`, or `quit`."
            }
        print(json.dumps(answer), file=output, flush=True)


def main():
    """Builds models and plans, says that it is ready, and serves."""
    arguments = parse_arguments()
    # Only answers go to the output, whatever a library prints.
    output, sys.stdout = sys.stdout, sys.stderr
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    tokenizer = transformers.AutoTokenizer.from_pretrained(arguments.encoder)
    rows = peer_data.read_rows(arguments.texts, arguments.max_examples)
    examples = peer_data.tokenize(rows, tokenizer, arguments.max_length)
    num_classes = max(2, 1 + max(example["label"] for example in examples))
    runners = make_runners(arguments, num_classes)
    grouped, size = arguments.group_by_length, arguments.batch_size
    plans = {
        name: Plan(examples, grouped, size, arguments.seed) for name in runners
    }
    ready = {
        "ready": True,
        "examples": len(examples),
        "trained_weights": peer_model.trained_weights(runners["train"].model),
        "arguments": vars(arguments),
        "versions": {
            "adapters": adapters.__version__,
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        },
    }
    print(json.dumps(ready), file=output, flush=True)
    serve(runners, plans, tokenizer.pad_token_id, output)


if __name__ == "__main__":
    main()
