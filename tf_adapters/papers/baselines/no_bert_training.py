"""Prepares data for networks without an encoder, and trains one network."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

import numpy as np

from tf_adapters import heads
from tf_adapters.data.tokens.packing import TextPacker
from tf_adapters.encoders.load import load_encoder
from tf_adapters.papers.baselines import no_bert_model

if TYPE_CHECKING:
    from tf_adapters.config.settings import Config
    from tf_adapters.tasks.task import Task


class Data:
    """Encodes the rows of each split, and evaluates networks on them.

    Args:
        config: `Config`.
        task: `Task`.
        rows: Dict from split to rows.
    """

    def __init__(
        self, config: Config, task: Task, rows: dict[str, list[dict[str, Any]]]
    ) -> None:
        encoder, tokenizer = load_encoder(config.encoder)
        self.table = encoder.backbone.token_embedding.embeddings.numpy()
        packer = TextPacker(tokenizer, config.data.max_length)
        self.pad_id = packer.special_tokens.pad
        self.metrics = task.metrics
        head = heads.for_task(task, encoder, **(config.head or {}))
        self.head = head.for_rows(rows["train"])
        self.num_outputs = max(1, len(task.labels))
        self._encoded = {
            split: self.head.encode(some, task.text_fields, packer)
            for split, some in rows.items()
        }

    @property
    def splits(self) -> list[Any]:
        """Names of all splits except the training split."""
        return [split for split in self._encoded if split != "train"]

    def arrays(self, split: Any) -> tuple[np.ndarray, np.ndarray]:
        """Returns a split's padded token ids `(rows, tokens)` and targets."""
        encoded = self._encoded[split]
        longest = max(map(len, encoded.token_ids))
        ids = np.full((len(encoded.token_ids), longest), self.pad_id, "int32")
        for row, some in zip(ids, encoded.token_ids, strict=True):
            row[: len(some)] = some
        return ids, np.asarray(encoded.targets)

    def judge(
        self, network: Any, split: Any
    ) -> tuple[dict[str, float], dict[str, Any]]:
        """Evaluates a network on a split.

        Returns a dict of metrics, and a dict of predictions and targets.
        """
        ids, targets = self.arrays(split)
        outputs = network.predict(ids, batch_size=256, verbose=0)
        return self.head.judge(self.metrics, list(outputs), targets)


def train_network(network: Any, settings: Any, data: Any, train: Any) -> float:
    """Trains a network, and restores the weights of its best epoch.

    Returns the best validation metric, or -1 if training diverged immediately.
    """
    metric = data.metrics[0]
    best = {"value": -1.0, "weights": network.get_weights(), "epoch": -1}
    network.compile(
        no_bert_model.optimizer_of(settings),
        loss=data.head.loss,
        jit_compile=False,
    )
    ids, targets = data.arrays("train")
    for epoch in range(train.epochs):
        done = network.fit(ids, targets, batch_size=train.batch_size, verbose=0)
        if not np.isfinite(done.history["loss"][-1]):
            break
        value = data.judge(network, "validation")[0][metric]
        if value > best["value"]:
            best = {
                "value": value,
                "weights": network.get_weights(),
                "epoch": epoch,
            }
        patience = train.early_stopping_patience
        if patience is not None and epoch - best["epoch"] >= patience:
            break
    network.set_weights(best["weights"])
    return float(best["value"])
