"""Metrics of a model on labeled examples, whatever trainer computes them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.training.finite import check_outputs
from tf_adapters.training.mean_loss import mean_loss

if TYPE_CHECKING:
    import numpy as np

    from tf_adapters.data.examples import Examples


def judge(
    head: Any,
    metric_names: tuple[str, ...],
    outputs: list[np.ndarray],
    examples: Examples,
    evaluate_loss: bool,
) -> tuple[dict[str, float], dict[str, Any]]:
    """Returns the metrics of a model's outputs, and predictions to store.

    Args:
        head: A head, see `tf_adapters.heads`.
        metric_names: Names in `heads.metrics`.
        outputs: List with the model's outputs for each example.
        examples: `Examples` with targets.
        evaluate_loss: Whether the metrics include the loss.

    Returns:
        Dict of metrics, and the predictions from the head's `judge`.

    Raises:
        NonFiniteError: If outputs are NaN.
    """
    check_outputs(outputs)
    values, compared = head.judge(
        metric_names, outputs, examples.targets, examples.source
    )
    has_loss = examples.targets is not None or examples.masking is not None
    if evaluate_loss and has_loss:
        values["loss"] = mean_loss(head, outputs, examples)
    return values, compared
