"""Merges adapters in one of several ways, with any weights."""

from collections.abc import Sequence
import dataclasses
import os
from typing import Any

import keras
import numpy as np

from tf_adapters.common.checks import check_known
from tf_adapters.common.checks import checked_numbers
from tf_adapters.common.checks import is_integer
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.common.types import Tensor
from tf_adapters.encoders.encoder import Encoder
from tf_adapters.merging import activations
from tf_adapters.merging import arithmetic
from tf_adapters.merging import matching
from tf_adapters.merging import mergeable
from tf_adapters.merging import weights_by_slot
from tf_adapters.methods import LoRA
from tf_adapters.methods.method import EncoderShape
from tf_adapters.methods.method import Method
from tf_adapters.models import trained_members
from tf_adapters.models.adapter_model import AdapterModel

# Dict from each way to merge to whether the weights are divided by their sum.
WAYS = {
    "mean": True,
    "matched_mean": True,
    "sum": False,
    "output_mean": True,
    "output_sum": False,
}


class AdapterMerge:
    """Merges compatible adapters, with any weights.

    Args:
        adapters: See `merge_adapters`.
        encoder: See `merge_adapters`.
        how: See `merge_adapters`.
        head_of: See `merge_adapters`.
        inputs: See `merge_adapters`.
        rank: See `merge_adapters`.
    """

    def __init__(
        self,
        adapters: Sequence[str | os.PathLike[str] | AdapterModel],
        encoder: Encoder,
        how: str,
        head_of: str | os.PathLike[str] | AdapterModel | None = None,
        inputs: dict[str, Tensor] | None = None,
        rank: int | None = None,
    ) -> None:
        check_known("way to merge", how, list(WAYS))
        self.how = how
        self.encoder = encoder
        self.joins = how.startswith("output_")
        trained_members.check_is_list(adapters)
        trained_members.check_is_any(adapters)
        self.target_index = _index_of(head_of, adapters)
        self.members = mergeable.read_mergeable(
            adapters, encoder, not self.joins, self.target_index
        )
        self.target = self.members[self.target_index]
        self.is_lora = mergeable.is_lora(self.target)
        self.rank = self._checked_rank(rank)
        models = [
            mergeable.model_of_member(member, encoder)
            for member in self.members
        ]
        self.slots = [weights_by_slot.by_slot(m.tensors) for m in self.members]
        if how == "matched_mean":
            self.slots = self._matched(models, inputs)
        if self.joins and self.is_lora:
            self.slots = [
                _with_factor(slots, member.method)
                for slots, member in zip(self.slots, self.members, strict=True)
            ]

    def _checked_rank(self, rank: int | None) -> int | None:
        if rank is None:
            return None
        most = self._highest_rank()
        is_rank = is_integer(rank) and 1 <= rank <= most
        if not (self.is_lora and self.joins and is_rank):
            raise UserError(
                "`rank` is an integer, to which the rank of the products of "
                'LoRAs is cut. It needs how="output_mean" or "output_sum", and '
                "is at most the sum of their ranks and the smaller side of "
                "their kernels. "
                f'Received: rank={rank}, how="{self.how}", at most {most}'
            )
        return rank

    def _highest_rank(self) -> int:
        """Returns the highest possible value of `rank`.

        For LoRAs, it is the sum of their ranks, but at most the smallest side
        of any of their kernels. For bottlenecks, it is the sum of their units.
        """
        units = sum(
            mergeable.width_of(member, self.encoder) for member in self.members
        )
        if not self.is_lora:
            return units
        shape = EncoderShape.of(self.encoder)
        sizes = map(shape.of_projection, self.target.method.projections)
        return min(units, *map(min, sizes))

    def _matched(
        self, models: list[AdapterModel], inputs: dict[str, Tensor] | None
    ) -> list[dict[str, dict[str, np.ndarray]]]:
        if self.is_lora:
            return [
                matching.matched_loras(slots, self.slots[self.target_index])
                for slots in self.slots
            ]
        if inputs is None:
            raise _no_texts()
        # Only the target has its head, which may need inputs of its own.
        models[self.target_index].check_features(inputs)
        if not np.any(keras.ops.convert_to_numpy(inputs["padding_mask"])):
            raise _no_texts()
        found = [activations.unit_activations(m, inputs) for m in models]
        return [
            matching.matched_bottlenecks(slots, units, found[self.target_index])
            for slots, units in zip(self.slots, found, strict=True)
        ]

    def checked_weights(self, weights: Sequence[float] | None) -> list[float]:
        """Checks the merge weights. For a mean, divides them by their sum."""
        number, is_mean = len(self.members), WAYS[self.how]
        if weights is None:
            weights = [1.0] * number if is_mean else []
        weights = checked_numbers("weights", weights)
        if len(weights) != number:
            raise UserError(
                f"A merge by `{self.how}` of {number} adapters needs a number "
                f"for each as `weights`. Received: {tuple(weights) or None}"
            )
        total = sum(weights) if is_mean else 1.0
        if abs(total) < 1e-9:
            raise UserError(
                "The weights sum to 0, so they have no mean. Pass "
                f'how="output_sum", or other weights than {tuple(weights)}.'
            )
        return [weight / total for weight in weights]

    def make_model(
        self, weights: Sequence[float], **options: Any
    ) -> AdapterModel:
        """Returns the `AdapterModel` merged with given `checked_weights`."""
        model = AdapterModel(
            self.encoder, self.method, self.target.head, **options
        )
        self.assign(model, weights)
        return model

    @property
    def method(self) -> Method:
        """The method of the merged adapter."""
        method = self.target.method
        if not self.joins:
            return method
        width = self.rank or sum(
            mergeable.width_of(member, self.encoder) for member in self.members
        )
        if self.is_lora:
            # alpha / rank is 1, because the members' weights were already
            # multiplied by it.
            return dataclasses.replace(method, rank=width, alpha=float(width))
        return dataclasses.replace(method, units=width, reduction_factor=None)

    def assign(
        self, model: AdapterModel, weights: Sequence[float] | np.ndarray
    ) -> None:
        """Merges with other weights, into a model from `make_model`."""
        tensors = {
            **weights_by_slot.to_tensors(self._combined(weights)),
            **weights_by_slot.of_head(self.target.tensors),
        }
        for name, variable in model.trained_variables().items():
            variable.assign(tensors[name])
        model.reparameterization.restart()

    def _combined(
        self, weights: Sequence[float] | np.ndarray
    ) -> dict[str, dict[str, np.ndarray]]:
        if not self.joins:
            return _weighted_sum(self.slots, weights)
        combined = arithmetic.joined(self.slots, weights)
        if self.rank is None:
            return combined
        return arithmetic.cut_to_rank(combined, self.rank)


def _no_texts() -> UserError:
    return UserError(
        "Matching the units of bottlenecks needs texts: pass `inputs`, the "
        "features of a few hundred texts."
    )


def _index_of(
    head_of: str | os.PathLike[str] | AdapterModel | None,
    adapters: Sequence[str | os.PathLike[str] | AdapterModel],
) -> int:
    """Returns the index of `head_of` in `adapters`; if `None`, the last."""
    if head_of is None:
        return len(adapters) - 1
    for index, adapter in enumerate(adapters):
        path = _path(adapter)
        if head_of is adapter or (path and path == _path(head_of)):
            return index
    raise UserError(
        "`head_of` must be one of the merged adapters, written as in their "
        f"list. Received: {shown(head_of)}"
    )


def _path(adapter: object) -> str | None:
    is_folder = isinstance(adapter, str | os.PathLike)
    return os.fspath(adapter) if is_folder else None


def _weighted_sum(
    members: list[dict[str, dict[str, np.ndarray]]],
    weights: Sequence[float] | np.ndarray,
) -> dict[str, dict[str, np.ndarray]]:
    """Returns the weighted sum of several adapters' arrays.

    The factors `A` and `B` of a LoRA are summed separately, as in LoraHub
    (Huang et al. 2023, arXiv:2307.13269), so the product of the sums also has
    the cross terms `w_i w_j A_i B_j`.

    Args:
        members: List with a dict for each adapter, as returned by
            `weights_by_slot.by_slot`. Shapes of arrays must be equal.
        weights: A number for each member.
    """
    return {
        slot: {
            name: sum(
                (
                    weight * member[slot][name]
                    for member, weight in zip(members, weights, strict=True)
                ),
                start=np.zeros((), array.dtype),
            ).astype(array.dtype)
            for name, array in arrays.items()
        }
        for slot, arrays in members[0].items()
    }


def _with_factor(
    slots: dict[str, dict[str, np.ndarray]], method: LoRA
) -> dict[str, dict[str, np.ndarray]]:
    """Multiplies a LoRA's second factor, `up_kernel`, by `alpha / rank`."""
    factor = method.alpha / method.rank
    return {
        slot: {**found, "up_kernel": found["up_kernel"] * factor}
        for slot, found in slots.items()
    }
