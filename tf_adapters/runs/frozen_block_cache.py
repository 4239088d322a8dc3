"""Caches the output of a model's frozen first blocks for all epochs.

If the first blocks have no trained weights and no randomness, their output for
an example is the same in each epoch. This output is computed once and cached.
Each step then computes only the blocks after the frozen ones.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from pathlib import Path
from typing import TYPE_CHECKING
import warnings

from tf_adapters.data.batches import token_vectors
from tf_adapters.data.batches.token_vectors import TokenVectors
from tf_adapters.models import frozen_blocks
from tf_adapters.training import distribution
from tf_adapters.training import workers

if TYPE_CHECKING:
    from tf_adapters.data.examples import Examples
    from tf_adapters.training.trainer import Trainer

# Maximum size, in bytes, of an output that is cached in memory. Larger outputs
# are cached in a file.
IN_MEMORY = 2**30


def cached_splits(
    trainer: Trainer, examples: dict[str, Examples], folder: Path
) -> tuple[Examples, Examples]:
    """Returns the training and the validation examples; see `cached`."""
    train, validation = (
        cached(trainer, examples[split], split, folder, len(examples["train"]))
        for split in ("train", "validation")
    )
    return train, validation


def cached(
    trainer: Trainer,
    examples: Examples,
    split: str,
    folder: Path,
    num_train: int,
) -> Examples:
    """Caches the output of the frozen first blocks, if that saves time.

    Args:
        trainer: `Trainer`.
        examples: `Examples` of the split.
        split: `"train"` or `"validation"`.
        folder: Path of the run folder. A large output is cached in a file
            there. The file disappears when the process ends.
        num_train: Number of training examples.

    Returns:
        `examples`, or a copy that has the cached output as `token_vectors`.
    """
    passes = _num_passes(trainer, split, num_train)
    blocks = _num_blocks(trainer, examples, split, passes)
    if not blocks:
        return examples
    dtype = trainer.settings.cache_frozen_blocks
    width = trainer.model.encoder.width
    size = token_vectors.num_bytes(examples.lengths.sum(), width, dtype)
    name = frozen_blocks.input_name(blocks)
    try:
        place = None if size <= IN_MEMORY else folder
        vectors = TokenVectors(name, examples.lengths, width, dtype, place)
    except OSError as error:
        warnings.warn(
            f"No room for {_shown(size)} in {folder}: {error.strerror}. The "
            f"first {blocks} blocks are computed again in each pass. "
            "train.cache_frozen_blocks=float16 takes half the room.",
            stacklevel=2,
        )
        return examples
    _compute(trainer, examples, vectors, blocks)
    print(
        f"{split}: the first {blocks} blocks are frozen. Their output is "
        f"computed once and kept: {_shown(size)} in {place or 'memory'}",
        flush=True,
    )
    return dataclasses.replace(examples, token_vectors=vectors)


def _num_passes(trainer: Trainer, split: str, num_train: int) -> int:
    """Returns how often the training passes over a split, at least."""
    settings = trainer.settings
    passes = max(settings.epochs, 2 if settings.min_steps else 1)
    if settings.max_steps:
        trained_on = settings.max_steps * settings.batch_size
        passes = min(passes, math.ceil(trained_on / max(num_train, 1)))
    if split == "validation" and settings.validate_every_steps:
        passes += 1
    return passes


def _num_blocks(
    trainer: Trainer, examples: Examples, split: str, passes: int
) -> int:
    """Returns the number of the encoder's first blocks whose output is cached.

    The number is 0 if caching is off, cannot be used, or would not save time.
    """
    settings = trainer.settings
    if (
        settings.cache_frozen_blocks == "off"
        # Computing the output of all examples is a pass too.
        or passes < 2
        or not len(examples)
        # The features of masked examples differ in each epoch, and those of
        # multiple choice are nested.
        or examples.masking is not None
        or examples.has_choices
        or not _is_on_one_host(trainer)
    ):
        return 0
    return frozen_blocks.num_frozen_blocks(
        trainer.model, trainer.variables, training=split == "train"
    )


def _is_on_one_host(trainer: Trainer) -> bool:
    """Returns whether this process feeds all devices and none is a TPU."""
    strategy = trainer.strategy
    return workers.num_workers(strategy) == 1 and not distribution.is_tpu(
        strategy
    )


def _compute(
    trainer: Trainer, examples: Examples, vectors: TokenVectors, blocks: int
) -> None:
    function = functools.partial(
        frozen_blocks.frozen_output, trainer.model.encoder, blocks=blocks
    )
    for index, row in trainer.compute(function, examples, "frozen blocks"):
        vectors.put(index, row)


def _shown(size: int) -> str:
    return f"{size / 1e6:,.3g} MB"
