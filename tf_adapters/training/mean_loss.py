"""The mean loss of a set of examples, computed from the model's outputs."""

import collections
from collections.abc import Iterable
from typing import Any

from keras import ops
import numpy as np

from tf_adapters.data.examples import IGNORED
from tf_adapters.data.examples import Examples

# Number of examples per call of `head.loss`. It limits memory, since a loss may
# compare each example with all others of the call.
_AT_ONCE = 1024


def mean_loss(
    head: Any, outputs: Iterable[np.ndarray], examples: Examples
) -> float:
    """Returns a head's loss, averaged over the loss terms of all examples.

    An example can have several terms, for example one for each word.

    Args:
        head: A head, see `tf_adapters.heads`.
        outputs: List with the model's outputs for each example, as
            `Trainer.predict` returns it.
        examples: `Examples` with targets, or with tokens to hide.
    """
    if examples.masking is not None:
        # Targets are drawn with the masks. The outputs have their loss.
        return head.evaluate(["loss"], outputs, None, None)["loss"]
    groups = collections.defaultdict(list)
    for output, target in zip(outputs, _targets(examples), strict=True):
        target = _as_long(target, output)
        groups[np.shape(output), np.shape(target)].append((target, output))
    total = 0.0
    for pairs in groups.values():
        for start in range(0, len(pairs), _AT_ONCE):
            part = zip(*pairs[start : start + _AT_ONCE], strict=True)
            targets, stacked = map(ops.convert_to_tensor, map(np.stack, part))
            total += float(ops.sum(head.loss(targets, stacked)))
    return total / examples.count(np.arange(len(examples)))


def _targets(examples: Examples) -> list[list[int]] | np.ndarray:
    targets: Any = examples.targets
    if isinstance(targets, list):
        return [target.tolist() for target in targets]
    return targets if isinstance(targets, np.ndarray) else targets.to_list()


def _as_long(target: Any, output: np.ndarray) -> Any:
    """Pads the classes of a sentence's words to the length of its outputs.

    Targets that are not a list are returned unchanged.
    """
    if not isinstance(target, list):
        return target
    filled = target + [IGNORED] * (len(output) - len(target))
    return np.array(filled, "int32")
