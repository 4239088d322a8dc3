"""What a run has done so far, into a checkpoint and out of it again."""

import itertools

import numpy as np


def tensors(loop):
    """Returns a loop's arrays by name.

    Args:
        loop: `Loop`.

    Returns:
        Dict with the trained weights, the optimiser's variables (what it counts
        among them, and with that the learning rate and the seeds of dropout),
        the best weights, and what steps since the last check gave.
    """
    arrays = {
        "weights": values(loop.trainer.variables),
        "optimizer": values(loop.trainer.optimizer.variables),
        "best": loop.best_weights or [],
        "losses": [np.asarray(losses) for losses, _ in loop.pending],
        "norms": [np.asarray(norms) for _, norms in loop.pending],
    }
    return {
        f"{part}/{number}": array
        for part, some in arrays.items()
        for number, array in enumerate(some)
    }


def values(variables):
    """Returns variables as arrays; scalars too, which NumPy has as numbers."""
    return [np.asarray(variable.numpy()) for variable in variables]


def state(loop):
    """Returns the rest of what a loop has done, as plain values."""
    best = None if loop.best is None else loop.history.index(loop.best)
    return {
        "history": loop.history,
        "best": best,
        "seconds": loop.seconds,
        "building_seconds": loop.building_seconds,
        "building_examples": loop.building_examples,
    }


def restore(loop, checkpoint):
    """Takes a loop, whose optimiser is made, to where a checkpoint was written.

    Args:
        loop: `Loop`.
        checkpoint: `Checkpoint`.
    """

    def part(name):
        found = itertools.takewhile(
            checkpoint.tensors.__contains__,
            (f"{name}/{number}" for number in itertools.count()),
        )
        return [checkpoint.tensors[key] for key in found]

    assign_values(loop.trainer.variables, part("weights"))
    assign_values(loop.trainer.optimizer.variables, part("optimizer"))
    loop.step = checkpoint.step
    batches = itertools.chain.from_iterable(loop.plans)
    loop.done = list(itertools.islice(batches, loop.step))
    loop.examples = sum(len(batch.indices) for batch in loop.done)
    loop.pending = list(zip(part("losses"), part("norms"), strict=True))
    for name in ("history", "seconds", "building_seconds", "building_examples"):
        setattr(loop, name, checkpoint.state[name])
    if checkpoint.state["best"] is not None:
        loop.best = loop.history[checkpoint.state["best"]]
        loop.best_weights = part("best")


def assign_values(variables, arrays):
    """Gives variables the values of as many arrays."""
    for variable, array in zip(variables, arrays, strict=True):
        variable.assign(array)
