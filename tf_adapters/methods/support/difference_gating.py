"""Prunes and packs the differences that diff pruning trains."""

import math
from typing import Any

from keras import ops
import numpy as np

from tf_adapters.methods.support.sparse_packing import GATES
from tf_adapters.methods.support.sparse_packing import SparseGating


def all_changes(model: Any) -> np.ndarray:
    """Returns the gated differences of all encoder weights as a flat array."""
    differences = model.reparameterization.functions
    changes = [ops.convert_to_numpy(d.change()).ravel() for d in differences]
    return np.concatenate(changes)


class DifferenceGating(SparseGating):
    """Prunes, stores and reopens the gated elements of each `SparseDiff`.

    The elements are pruned when the last phase of training begins.
    """

    replaced = ("/difference", GATES, "/group/scaled_log_alpha")

    @property
    def last_phase_learning_rate_multiplier(self) -> float:
        """Factor of the learning rate after pruning; see `DiffPruning`."""
        return self.method.last_phase_learning_rate_multiplier

    def last_phase_step(self, total_steps: int) -> int:
        """Returns the training step after which the differences are pruned."""
        return max(1, round(total_steps * (1 - self.method.last_phase)))

    def start_last_phase(self, model: Any) -> None:
        """Keeps only the elements of the differences that are largest.

        Elements are compared by absolute value. The method's `share` of them is
        kept, rounded down, and all others become zero. Keras's `fit` has no
        phases: call this method between two calls of `fit`.
        """
        sizes = np.abs(all_changes(model))
        count = int(self.method.share * len(sizes))
        kept = np.zeros(len(sizes), bool)
        kept[np.argpartition(-sizes, count - 1)[:count]] = True
        differences = model.reparameterization.functions
        ends = np.cumsum([math.prod(d.shape) for d in differences])
        parts = np.split(kept, ends[:-1])
        for difference, part in zip(differences, parts, strict=True):
            difference.keep(part.reshape(difference.shape))

    def reopen(self, model: Any) -> None:
        for difference in model.reparameterization.functions:
            difference.reopen()

    def take_weights(
        self, tensors: dict[str, np.ndarray], prefix: str
    ) -> tuple[np.ndarray, np.ndarray]:
        difference, *gates = (
            tensors.pop(prefix + end)
            for end in self.replaced
            if prefix + end in tensors
        )
        values: Any = math.prod(map(self.gate_values, gates))
        return values, difference

    def restored(
        self,
        shapes: dict[str, tuple[int, ...]],
        prefix: str,
        weights: np.ndarray,
        logits: np.ndarray,
    ) -> dict[str, np.ndarray]:
        multiplier = self.method.gate_learning_rate_multiplier
        arrays = weights, logits, np.array(self.certain / multiplier, "float32")
        return {
            end: array.reshape(shapes[prefix + end])
            for end, array in zip(self.replaced, arrays, strict=True)
            if prefix + end in shapes
        }
