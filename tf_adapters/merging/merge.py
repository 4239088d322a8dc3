"""Trained adapters of one encoder become one ordinary adapter."""

from tf_adapters.common.checks import check_known
from tf_adapters.merging import search
from tf_adapters.merging.adapter_merge import AdapterMerge


def merge_adapters(
    adapters,
    encoder,
    how="mean",
    weights=None,
    head_of=None,
    inputs=None,
    rank=None,
    **options,
):
    """Returns one adapter made of several, without training.

    It is a model like that of any adapter: it can be saved, exported, fused
    and trained on. The adapters are of Houlsby's method with frozen norms, of
    Pfeiffer's, or LoRAs, all of one of these.

    Args:
        adapters: List of folders of adapters and of models in memory.
        encoder: `Encoder` that all were trained on, freshly loaded.
        how: `"mean"` (default): of each weight, of a LoRA's factors likewise.
            `"matched_mean"`: the same, after the units of each adapter were
            put in the order of those of `head_of`. `"sum"`: of each weight, as
            in LoraHub. `"output_mean"`: a wider adapter of all units, which in
            each place computes the mean of what the adapters compute there.
            `"output_sum"`: the same for sums; weights below 0 subtract.
        weights: Number for each adapter. Of a mean they are divided by their
            sum, and by default equal; a sum needs them.
        head_of: The one of `adapters` whose head the model gets. Default: the
            last.
        inputs: Dict of features of some hundred texts, by which bottlenecks'
            units are matched. A LoRA's ranks are matched by their weights.
        rank: Integer. Of a LoRA's `"output_mean"` or `"output_sum"`: the rank
            to cut the products to, the nearest there is (by singular values).
        **options: See `AdapterModel`.

    Raises:
        UserError: If an adapter is missing, damaged or of another encoder, if
            they do not fit one another, or an argument is wrong.

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
    adapters,
    encoder,
    loss,
    how="output_sum",
    head_of=None,
    evaluations=40,
    l1=search.L1,
):
    """Returns weights of a sum that make a loss small, without a gradient.

    That is LoraHub (Huang et al. 2023, arXiv:2307.13269); see
    `tf_adapters.merging.search` for what is different. `merge_adapters` makes
    the model of the weights.

    Args:
        adapters: See `merge_adapters`.
        encoder: See `merge_adapters`.
        loss: Function of the merged `AdapterModel` that returns a number: its
            mean loss on a few labelled examples.
        how: `"output_sum"` (default), or `"sum"`, the paper's.
        head_of: See `merge_adapters`.
        evaluations: How often the loss is evaluated, at most.
        l1: Factor of the mean of the weights' sizes, which is added to it.

    Returns:
        List of a number from -1.5 to 1.5 for each adapter.

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
    check_known("way to search weights of,", how, ["output_sum", "sum"])
    merge = AdapterMerge(adapters, encoder, how, head_of)
    model = merge.make_model([0.0] * len(merge.members))

    def loss_of(weights):
        merge.assign(model, weights)
        return loss(model)

    found, _ = search.search(loss_of, len(merge.members), l1, evaluations)
    return [float(weight) for weight in found]
