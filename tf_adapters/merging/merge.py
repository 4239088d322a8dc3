"""Trained adapters of one encoder become one ordinary adapter."""

import dataclasses
import math
from pathlib import Path

from tf_adapters.common.errors import UserError
from tf_adapters.common.suggestions import check_known
from tf_adapters.merging import activations
from tf_adapters.merging import arithmetic
from tf_adapters.merging import matching
from tf_adapters.merging import mean
from tf_adapters.merging import members as merged_members
from tf_adapters.merging import parts
from tf_adapters.merging import search
from tf_adapters.models.adapter_model import AdapterModel

# Name to whether the weights are divided by their sum.
WAYS = {
    "mean": True,
    "matched_mean": True,
    "sum": False,
    "output_mean": True,
    "output_sum": False,
}


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

    Example:
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
    merge = Merge(adapters, encoder, how, head_of, inputs, rank)
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

    Example:
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
    merge = Merge(adapters, encoder, how, head_of)
    model = merge.make_model([0.0] * len(merge.members))

    def loss_of(weights):
        merge.assign(model, weights)
        return loss(model)

    found, _ = search.search(loss_of, len(merge.members), l1, evaluations)
    return [float(weight) for weight in found]


class Merge:
    """Adapters that fit one another, and one of the ways to merge them.

    Args:
        adapters, encoder, how, head_of, inputs, rank: See `merge_adapters`.
    """

    def __init__(
        self, adapters, encoder, how, head_of=None, inputs=None, rank=None
    ):
        check_known("way to merge", how, list(WAYS))
        self.how = how
        self.encoder = encoder
        self.joins = how.startswith("output_")
        self.members = merged_members.read_members(
            adapters, encoder, same_width=not self.joins
        )
        self.target = self.members[_place(head_of, adapters)]
        self.is_lora = merged_members.is_lora(self.target)
        self.rank = self._checked_rank(rank)
        models = [
            merged_members.model_of_member(member, encoder)
            for member in self.members
        ]
        self.slots = [parts.by_slot(m.tensors) for m in self.members]
        if how == "matched_mean":
            self.slots = self._matched(models, inputs)
        if self.joins and self.is_lora:
            self.slots = [
                _with_factor(slots, model)
                for slots, model in zip(self.slots, models, strict=True)
            ]

    def _checked_rank(self, rank):
        width = sum(
            merged_members.width_of(member, self.encoder)
            for member in self.members
        )
        if rank is None:
            return None
        if not (self.is_lora and self.joins) or not 1 <= rank <= width:
            raise UserError(
                "`rank` is what the products of LoRAs are cut to: with how="
                '"output_mean" or "output_sum", at most the sum of their '
                f'ranks. Received: rank={rank}, how="{self.how}", widths of '
                f"{width} together"
            )
        return rank

    def _matched(self, models, inputs):
        target = self.members.index(self.target)
        if self.is_lora:
            return [
                matching.matched_loras(slots, self.slots[target])
                for slots in self.slots
            ]
        if inputs is None:
            raise UserError(
                "To match the units of bottlenecks takes texts: pass `inputs`, "
                "the features of some hundred."
            )
        found = [activations.unit_activations(m, inputs) for m in models]
        return [
            matching.matched_bottlenecks(slots, units, found[target])
            for slots, units in zip(self.slots, found, strict=True)
        ]

    def checked_weights(self, weights):
        """Returns a number for each adapter, of a mean with the sum 1."""
        number, is_mean = len(self.members), WAYS[self.how]
        if weights is None and is_mean:
            weights = [1.0] * number
        weights = [] if weights is None else [float(w) for w in weights]
        if len(weights) != number or not all(map(math.isfinite, weights)):
            raise UserError(
                f"A merge by `{self.how}` of {number} adapters takes a number "
                f"for each as `weights`. Received: {tuple(weights) or None}"
            )
        total = sum(weights) if is_mean else 1.0
        if abs(total) < 1e-9:
            raise UserError(
                "The weights' sum is 0, so that they have no mean. Pass "
                f'how="output_sum", or other weights than {tuple(weights)}.'
            )
        return [weight / total for weight in weights]

    def make_model(self, weights, **options):
        """Returns the `AdapterModel` that has these weights."""
        model = AdapterModel(
            self.encoder, self.method, self.target.head, **options
        )
        self.assign(model, weights)
        return model

    @property
    def method(self):
        """What a model of the result is made with."""
        method = self.target.method
        if not self.joins:
            return method
        width = self.rank or sum(
            merged_members.width_of(member, self.encoder)
            for member in self.members
        )
        if self.is_lora:
            # The factors are in the weights.
            return dataclasses.replace(method, rank=width, alpha=float(width))
        return dataclasses.replace(method, units=width, reduction_factor=None)

    def assign(self, model, weights):
        """Gives a model of `make_model` the merge with other weights."""
        tensors = {
            **parts.to_tensors(self._combined(weights)),
            **parts.of_head(self.target.tensors),
        }
        for name, variable in model.trained_variables().items():
            variable.assign(tensors[name])
        model.reparameterization.restart()

    def _combined(self, weights):
        if not self.joins:
            return mean.weighted_sum(self.slots, weights)
        combined = arithmetic.joined(self.slots, weights)
        if self.rank is None:
            return combined
        return arithmetic.cut_to_rank(combined, self.rank)


def _place(head_of, adapters):
    """Returns which of some adapters is meant: a folder or a model of them."""
    if head_of is None:
        return len(adapters) - 1
    for place, adapter in enumerate(adapters):
        is_folder = isinstance(adapter, str | Path)
        if head_of is adapter or (is_folder and str(adapter) == str(head_of)):
            return place
    raise UserError(
        "`head_of` names one of the adapters that are merged, as it stands "
        f"among them. Received: {head_of!r}"
    )


def _with_factor(slots, model):
    """Returns a LoRA's weights with `alpha / rank` in the second factor."""
    factor = model.method.alpha / model.method.rank
    return {
        slot: {**found, "up_kernel": found["up_kernel"] * factor}
        for slot, found in slots.items()
    }
