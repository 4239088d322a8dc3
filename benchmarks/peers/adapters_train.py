"""Trains a classifier with the `adapters` library, to be compared with ours.

    python benchmarks/peers/adapters_train.py --train=train.jsonl \
        --validation=dev.jsonl --encoder=<folder> --method=houlsby \
        --train_layer_norms --epochs=2 --learning_rate=5e-4 --output=run.json

runs under a Python with the packages of `benchmarks/peers/requirements.txt`.
Rows are {"text_a", "text_b"?, "label"} with class numbers as labels. Adapter
modules are the library's; head, what trains, optimiser and schedule are as
ours: AdamW, linear warm-up over the first tenth, linear decay to 0, global
clipping at 1, the encoder's dropout on.
"""

import argparse
import json
import os
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # Everything is read from disk.

import adapters  # noqa: E402
import numpy as np  # noqa: E402
import peer_data  # noqa: E402
import peer_model  # noqa: E402
from sklearn import metrics  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402

WARMUP_SHARE = 0.1
EVALUATION_BATCH_SIZE = 64


def parse_arguments():
    """Returns the command line's arguments."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--train", required=True, help="JSONL file")
    parser.add_argument("--validation", required=True, help="JSONL file")
    parser.add_argument("--encoder", required=True, help="Hugging Face folder")
    parser.add_argument("--output", required=True, help="JSON file to write")
    parser.add_argument("--method", choices=peer_model.METHODS, required=True)
    parser.add_argument("--units", type=int, default=64)
    parser.add_argument(
        "--activation",
        default="swish",
        choices=("swish", "relu", "gelu", "gelu_new"),
    )
    parser.add_argument("--train_layer_norms", action="store_true")
    parser.add_argument("--group_by_length", action="store_true")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--learning_rate", type=float, default=5e-4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--max_length", type=int, default=128)
    parser.add_argument("--max_train_examples", type=int, help="the first n")
    parser.add_argument(
        "--metric",
        default="accuracy",
        choices=("accuracy", "f1", "matthews", "micro_f1", "macro_f1"),
        help="selects the best epoch",
    )
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


def compute_metrics(labels, predictions):
    """Returns every metric over the whole set; f1 is that of class 1."""
    values = {
        "accuracy": metrics.accuracy_score(labels, predictions),
        "matthews": metrics.matthews_corrcoef(labels, predictions),
        "micro_f1": metrics.f1_score(labels, predictions, average="micro"),
        "macro_f1": metrics.f1_score(labels, predictions, average="macro"),
    }
    if max(*labels, *predictions) <= 1:
        values["f1"] = metrics.f1_score(labels, predictions)
    return {name: float(value) for name, value in values.items()}


def evaluate(model, examples, pad_token_id):
    """Returns the metrics of the model, with dropout off."""
    model.eval()
    lengths = [len(example["ids"]) for example in examples]
    predictions = np.zeros(len(examples), int)
    with torch.inference_mode():
        for batch in peer_data.sorted_batches(lengths, EVALUATION_BATCH_SIZE):
            chosen = [examples[i] for i in batch]
            inputs, _ = peer_data.collate(chosen, pad_token_id)
            predictions[batch] = model(**inputs).argmax(-1).numpy()
    return compute_metrics([e["label"] for e in examples], predictions)


def train_epoch(model, optimizer, schedule, batches, examples, pad_token_id):
    """Trains on every batch once and returns the mean loss and the seconds."""
    model.train()
    losses = []
    start = time.perf_counter()
    for batch in batches:
        chosen = [examples[i] for i in batch]
        inputs, labels = peer_data.collate(chosen, pad_token_id)
        loss = torch.nn.functional.cross_entropy(model(**inputs), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        peer_model.clip_gradients(model)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        if not np.isfinite(losses[-1]):
            raise ValueError(f"Loss {losses[-1]} at step {len(losses)}.")
    return float(np.mean(losses)), time.perf_counter() - start


def make_batches(arguments, lengths, epoch):
    """Returns one epoch's batches, a function of seed and epoch alone."""
    rng = np.random.default_rng((arguments.seed, epoch))
    if arguments.group_by_length:
        plan = peer_data.grouped_batches
    else:
        plan = peer_data.random_batches
    return plan(lengths, arguments.batch_size, rng)


def fit(arguments, model, train, validation, pad_token_id):
    """Trains for all epochs and returns what each of them gave."""
    lengths = [len(example["ids"]) for example in train]
    steps = arguments.epochs * len(make_batches(arguments, lengths, 0))
    optimizer = peer_model.make_optimizer(model, arguments.learning_rate)
    schedule = transformers.get_linear_schedule_with_warmup(
        optimizer, int(WARMUP_SHARE * steps), steps
    )
    history = []
    for epoch in range(arguments.epochs):
        batches = make_batches(arguments, lengths, epoch)
        loss, seconds = train_epoch(
            model, optimizer, schedule, batches, train, pad_token_id
        )
        values = evaluate(model, validation, pad_token_id)
        history.append(
            {"epoch": epoch + 1, "loss": loss, "seconds": seconds, **values}
        )
        print(json.dumps(history[-1]), flush=True)
    return history


def report(arguments, model, history, num_train):
    """Returns the result as it is written; seconds are those of training."""
    seconds = sum(entry["seconds"] for entry in history)
    return {
        "best": max(history, key=lambda entry: entry[arguments.metric]),
        "epochs": history,
        "seconds": seconds,
        "examples_per_second": arguments.epochs * num_train / seconds,
        "trained_weights": peer_model.trained_weights(model),
        "arguments": vars(arguments),
        "versions": {
            "adapters": adapters.__version__,
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        },
    }


def main():
    """Trains, evaluates after each epoch, and writes one JSON file."""
    arguments = parse_arguments()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    tokenizer = transformers.AutoTokenizer.from_pretrained(arguments.encoder)
    rows = peer_data.read_rows(arguments.train, arguments.max_train_examples)
    validation_rows = peer_data.read_rows(arguments.validation)
    num_classes = 1 + max(row["label"] for row in rows + validation_rows)
    if arguments.metric == "f1" and num_classes > 2:
        raise ValueError(
            "`f1` is that of class 1 of two; use `micro_f1` or `macro_f1` "
            f"to select. Received: {num_classes} classes."
        )
    length = arguments.max_length
    train = peer_data.tokenise(rows, tokenizer, length)
    validation = peer_data.tokenise(validation_rows, tokenizer, length)
    model = peer_model.build(
        arguments.encoder,
        num_classes,
        arguments.method,
        arguments.units,
        arguments.activation,
        arguments.train_layer_norms,
    )
    history = fit(arguments, model, train, validation, tokenizer.pad_token_id)
    with open(arguments.output, "w", encoding="utf-8") as file:
        json.dump(report(arguments, model, history, len(train)), file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
