"""Trains taggers, readers and choosers with the `adapters` library.

    python benchmarks/peers/adapters_train_heads.py --head=tagging \
        --outputs=17 --train=train.npz --validation=dev.npz \
        --encoder=<folder> --method=houlsby --train_layer_norms \
        --output=run.json

The examples are those that ours are trained on, token for token; `accuracy.py`
one folder above writes them. What the model gives for the validation
examples after epoch n goes to `epoch_<n>.npy` next to the output, to be scored
by its reader. Adapter modules are the library's; head, loss, what trains,
optimizer and schedule are as ours.
"""

import os
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # Everything is read from disk.

import numpy as np
import peer_data
import peer_model
import peer_training
import torch

IGNORED = -1


class Head(torch.nn.Module):
    """Dropout and a linear layer on each token, or on each choice's first."""

    def __init__(self, encoder, kind, outputs):
        super().__init__()
        self.encoder, self.kind = encoder, kind
        # A span's head has no dropout, as in the paper's code.
        rate = 0.0 if kind == "span" else peer_model.HEAD_DROPOUT
        self.dropout = torch.nn.Dropout(rate)
        self.head = torch.nn.Linear(encoder.config.hidden_size, outputs)
        torch.nn.init.normal_(self.head.weight, std=0.02)
        torch.nn.init.zeros_(self.head.bias)

    def forward(self, inputs, choices=None):
        """Returns logits, (batch, tokens, outputs) or (batch, choices)."""
        hidden = self.encoder(**inputs, return_dict=True).last_hidden_state
        if choices is None:
            logits = self.head(self.dropout(hidden))
            is_padding = inputs["attention_mask"] == 0
            return logits.masked_fill(is_padding[..., None], -1e9)
        scores = self.head(self.dropout(hidden[:, 0]))[:, 0]
        rows = torch.split(scores, choices)
        return torch.nn.utils.rnn.pad_sequence(
            rows, batch_first=True, padding_value=-1e9
        )


class Examples:
    """Token ids and targets of a file, an example at a time."""

    def __init__(self, path):
        arrays = np.load(path, allow_pickle=False)
        self.ids, self.segments = (
            np.split(arrays[name], np.cumsum(arrays["lengths"])[:-1])
            for name in ("token_ids", "segment_ids")
        )
        self.choices = arrays.get("choices")
        self.targets = arrays["targets"]
        if self.choices is None:
            self.first = np.arange(len(self.ids) + 1)
        else:
            self.first = np.concatenate([[0], np.cumsum(self.choices)])
        if len(self.targets) == arrays["lengths"].sum() != len(self):
            self.targets = np.split(
                self.targets, np.cumsum(arrays["lengths"])[:-1]
            )

    def __len__(self):
        return len(self.first) - 1

    @property
    def lengths(self):
        """Tokens of each example's longest sequence."""
        return [
            max(len(self.ids[j]) for j in range(*self.first[i : i + 2]))
            for i in range(len(self))
        ]

    def batch(self, indices, pad_token_id):
        """Returns inputs, and the number of choices of each example."""
        sequences = [j for i in indices for j in range(*self.first[i : i + 2])]
        rows = [
            {"ids": self.ids[j], "segments": self.segments[j], "label": 0}
            for j in sequences
        ]
        inputs, _ = peer_data.collate(rows, pad_token_id)
        choices = None
        if self.choices is not None:
            choices = self.choices[indices].tolist()
        return inputs, choices


def loss_of(kind, logits, targets):
    """Returns the mean loss over all words, or over all examples.

    It is 0 where none of them has a target.
    """

    def cross_entropy(logits, targets):
        count = (targets != IGNORED).sum().clamp(min=1)
        return (
            torch.nn.functional.cross_entropy(
                logits, targets, ignore_index=IGNORED, reduction="sum"
            )
            / count
        )

    if kind == "tagging":
        padded = torch.full(logits.shape[:2], IGNORED)
        for row, target in enumerate(targets):
            padded[row, : len(target)] = torch.from_numpy(target)
        return cross_entropy(logits.flatten(0, 1), padded.flatten())
    targets = torch.from_numpy(np.stack(targets)).long()
    if kind == "choice":
        return cross_entropy(logits, targets)
    ends = [cross_entropy(logits[..., i], targets[:, i]) for i in (0, 1)]
    return (ends[0] + ends[1]) / 2


def predict(model, examples, pad_token_id):
    """Returns each example's outputs, without padding, one after the other."""
    found = [None] * len(examples)
    lengths = examples.lengths
    sizes = lengths if examples.choices is None else examples.choices
    for indices in peer_data.sorted_batches(
        lengths, peer_training.EVALUATION_BATCH_SIZE
    ):
        inputs, choices = examples.batch(indices, pad_token_id)
        outputs = model(inputs, choices).numpy()
        for i, output in zip(indices, outputs, strict=True):
            found[i] = output[: sizes[i]]
    return np.concatenate(found)


def parse_arguments():
    """Returns the command line's arguments."""
    parser = peer_training.make_parser(__doc__)
    parser.add_argument("--train", required=True, help="npz file")
    parser.add_argument("--validation", required=True, help="npz file")
    parser.add_argument(
        "--head", required=True, choices=("tagging", "span", "choice")
    )
    parser.add_argument("--outputs", type=int, required=True)
    parser.add_argument("--pad_token_id", type=int, default=0)
    return parser.parse_args()


def main():
    """Trains, predicts after each epoch, and writes what was found."""
    arguments = parse_arguments()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    train, validation = map(Examples, (arguments.train, arguments.validation))
    encoder = peer_model.build_encoder(
        arguments.encoder,
        arguments.method,
        arguments.units,
        arguments.activation,
        arguments.train_layer_norms,
    )
    model = Head(encoder, arguments.head, arguments.outputs)
    folder, epochs = Path(arguments.output).parent, []

    def loss(indices):
        inputs, choices = train.batch(indices, arguments.pad_token_id)
        targets = [train.targets[i] for i in indices]
        return loss_of(arguments.head, model(inputs, choices), targets)

    def evaluate():
        outputs = predict(model, validation, arguments.pad_token_id)
        epochs.append(f"epoch_{len(epochs) + 1}.npy")
        np.save(folder / epochs[-1], outputs.astype("float32"))
        return {"outputs": epochs[-1]}

    history = peer_training.fit(arguments, model, train.lengths, loss, evaluate)
    peer_training.write_report(arguments, model, history, len(train))


if __name__ == "__main__":
    main()
