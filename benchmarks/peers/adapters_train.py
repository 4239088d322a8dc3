"""Trains a classifier with the `adapters` library, to be compared with ours.

    python benchmarks/peers/adapters_train.py --train=train.jsonl \
        --validation=dev.jsonl --encoder=<folder> --method=houlsby \
        --train_layer_norms --epochs=2 --learning_rate=5e-4 --output=run.json

runs under a Python with the packages of `benchmarks/peers/requirements.txt`.
Rows are {"text_a", "text_b"?, "label"} with class numbers as labels. Adapter
modules are the library's; head, what trains, optimizer and schedule are as
ours: AdamW, linear warm-up over the first tenth, linear decay to 0, global
clipping at 1, the encoder's dropout on.
"""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # Everything is read from disk.

import numpy as np
import peer_data
import peer_model
import peer_training
from sklearn import metrics
import torch
import transformers


def parse_arguments():
    """Returns the command line's arguments."""
    parser = peer_training.make_parser(__doc__)
    parser.add_argument("--train", required=True, help="JSONL file")
    parser.add_argument("--validation", required=True, help="JSONL file")
    parser.add_argument("--max_length", type=int, default=128)
    parser.add_argument("--max_train_examples", type=int, help="the first n")
    parser.add_argument(
        "--metric",
        default="accuracy",
        choices=("accuracy", "f1", "matthews", "micro_f1", "macro_f1"),
        help="selects the best epoch",
    )
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
    """Returns the metrics of the model."""
    lengths = [len(example["ids"]) for example in examples]
    predictions = np.zeros(len(examples), int)
    for batch in peer_data.sorted_batches(
        lengths, peer_training.EVALUATION_BATCH_SIZE
    ):
        chosen = [examples[i] for i in batch]
        inputs, _ = peer_data.collate(chosen, pad_token_id)
        predictions[batch] = model(**inputs).argmax(-1).numpy()
    return compute_metrics([e["label"] for e in examples], predictions)


def fit(arguments, model, train, validation, pad_token_id):
    """Trains for all epochs and returns what each of them gave."""

    def loss_of(batch):
        chosen = [train[i] for i in batch]
        inputs, labels = peer_data.collate(chosen, pad_token_id)
        return torch.nn.functional.cross_entropy(model(**inputs), labels)

    return peer_training.fit(
        arguments,
        model,
        [len(example["ids"]) for example in train],
        loss_of,
        lambda: evaluate(model, validation, pad_token_id),
    )


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
    train = peer_data.tokenize(rows, tokenizer, length)
    validation = peer_data.tokenize(validation_rows, tokenizer, length)
    model = peer_model.build(
        arguments.encoder,
        num_classes,
        arguments.method,
        arguments.units,
        arguments.activation,
        arguments.train_layer_norms,
    )
    history = fit(arguments, model, train, validation, tokenizer.pad_token_id)
    best = max(history, key=lambda entry: entry[arguments.metric])
    peer_training.write_report(arguments, model, history, len(train), best=best)


if __name__ == "__main__":
    main()
