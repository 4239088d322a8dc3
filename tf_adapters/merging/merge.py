"""Merges trained adapters of one encoder into one ordinary adapter."""

from collections.abc import Callable
from collections.abc import Sequence
import os
from typing import Any

import numpy as np

from tf_adapters.common.checks import check_known
from tf_adapters.common.types import Tensor
from tf_adapters.encoders.encoder import Encoder
from tf_adapters.merging import search
from tf_adapters.merging.adapter_merge import AdapterMerge
from tf_adapters.models.adapter_model import AdapterModel


def merge_adapters(
    adapters: Sequence[str | os.PathLike[str] | AdapterModel],
    encoder: Encoder,
    how: str = "mean",
    weights: Sequence[float] | None = None,
    head_of: str | os.PathLike[str] | AdapterModel | None = None,
    inputs: dict[str, Tensor] | None = None,
    rank: int | None = None,
    **options: Any,
) -> AdapterModel:
    """Returns one adapter merged from several, without training.

    The result is an ordinary model: you can save, export, fuse and train it.
    The adapters must all be of the same method: Houlsby's with frozen norms,
    Pfeiffer's, or LoRA.

    Args:
        adapters: List of adapter folders and of models in memory.
        encoder: `Encoder` that all were trained on, freshly loaded.
        how: `"mean"` (default): the mean of each weight, including the factors
            of a LoRA. `"matched_mean"`: the same, after reordering the units of
            each adapter to match the adapter of `head_of`. `"sum"`: the sum of
            each weight, as in LoraHub. `"output_mean"`: a wider adapter with
            the units of all adapters, whose output is the mean of their
            outputs. `"output_sum"`: the same for the sum; negative weights
            subtract.
        weights: Number for each adapter. For a mean they are divided by their
            sum, and the default is equal weights. A sum has no default.
        head_of: Element of `adapters` that provides the head. Default: the
            last one.
        inputs: Dict of features of a few hundred texts, required to match the
            units of bottlenecks. For LoRAs, the rank components are matched by
            comparing the values of `A` and `B`.
        rank: Integer. For LoRAs with `"output_mean"` or `"output_sum"`: the
            rank of the merged LoRA, which keeps the largest singular values.
            Default: the sum of all ranks.
        **options: See `AdapterModel`.

    Raises:
        UserError: If an adapter is missing or damaged or belongs to another
            encoder, if adapters do not fit one another, or if an argument is
            wrong.

    Examples:
        >>> method = methods.Pfeiffer(units=8)
        >>> one = tf_adapters.adapt(encoder, method, head, name="one")
        >>> two = tf_adapters.adapt(encoder, method, head, name="two")
        >>> both = tf_adapters.merge_adapters(
        ...     [one, two], encoder, "matched_mean", inputs=features
        ... )
        >>> both.method.units
        8
        >>> difference = tf_adapters.merge_adapters(
        ...     [one, two], encoder, "output_sum", weights=(1, -0.5)
        ... )
        >>> difference.method.units
        16
    """
    merge = AdapterMerge(adapters, encoder, how, head_of, inputs, rank)
    return merge.make_model(merge.checked_weights(weights), **options)


def search_weights(
    adapters: Sequence[str | os.PathLike[str] | AdapterModel],
    encoder: Encoder,
    loss: Callable[[AdapterModel], float],
    how: str = "output_sum",
    head_of: str | os.PathLike[str] | AdapterModel | None = None,
    evaluations: int = 40,
    l1: float = search.L1,
) -> list[float]:
    """Returns the weights for a sum of adapters that minimize a loss.

    Gradients are not used.

    This is LoraHub (Huang et al. 2023, arXiv:2307.13269);
    `tf_adapters.merging.search` lists the differences. Pass the weights to
    `merge_adapters` to make the model.

    Args:
        adapters: See `merge_adapters`.
        encoder: See `merge_adapters`.
        loss: Function of the merged `AdapterModel` that returns a number, such
            as its mean loss on a few labeled examples.
        how: `"output_sum"` (default), or `"sum"`, as in the paper.
        head_of: See `merge_adapters`.
        evaluations: Maximum number of evaluations of the loss. Defaults to 40.
        l1: Factor of the penalty added to the loss, which is the mean of the
            weights' absolute values. Defaults to 0.05.

    Returns:
        List with a number from -1.5 to 1.5 for each adapter.

    Examples:
        >>> one = tf_adapters.adapt(encoder, methods.LoRA(), head, name="one")
        >>> two = tf_adapters.adapt(encoder, methods.LoRA(), head, name="two")
        >>> def loss(model):
        ...     losses = head.loss(np.array([1, 0]), model(features))
        ...     return float(keras.ops.mean(losses))
        >>> weights = tf_adapters.search_weights(
        ...     [one, two], encoder, loss, evaluations=5
        ... )
        >>> model = tf_adapters.merge_adapters(
        ...     [one, two], encoder, "output_sum", weights
        ... )
    """
    check_known("`how` of a search for weights,", how, ["output_sum", "sum"])
    merge = AdapterMerge(adapters, encoder, how, head_of)
    model = merge.make_model([0.0] * len(merge.members))

    def loss_of(weights: np.ndarray) -> float:
        merge.assign(model, weights)
        return loss(model)

    found, _ = search.search(loss_of, len(merge.members), l1, evaluations)
    return [float(weight) for weight in found]
