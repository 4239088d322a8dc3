"""Metrics of a model on labeled examples, whatever trainer computes them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.training.mean_loss import mean_loss

if TYPE_CHECKING:
    from tf_adapters.data.examples import Examples


def judge(
    trainer: Any, examples: Examples, title: str | None = None
) -> tuple[dict[str, float], dict[str, Any]]:
    """Returns the metrics of a trainer's model, and predictions to store.

    Args:
        trainer: `Trainer` or `JaxTrainer`.
        examples: `Examples` with targets.
        title: Title of a progress bar, shown if this takes long, or `None`
            (default) for no progress bar.

    Returns:
        Dict of metrics, and the predictions from the head's `judge`.
    """
    head, outputs = trainer.model.head, trainer.predict(examples, title)
    values, compared = head.judge(
        trainer.metric_names, outputs, examples.targets, examples.source
    )
    # For masked language modeling, the loss is one of the metrics.
    if trainer.settings.evaluate_loss and examples.targets is not None:
        values["loss"] = mean_loss(head, outputs, examples)
    return values, compared
