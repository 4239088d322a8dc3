"""Draws rows with a seed, and computes their fingerprints."""

import collections
from collections.abc import Sequence
import hashlib
import json
import random
from typing import Any

from tf_adapters.common.errors import UserError


def subsample(rows: Sequence[Any], num_rows: int, seed: int) -> Any:
    """Draws rows without replacement and keeps their order.

    Args:
        rows: List of rows.
        num_rows: Integer, at least 1. If there are fewer rows, all are kept.
        seed: Integer. Equal seeds draw equal rows.

    Returns:
        List of at most `num_rows` rows.

    Raises:
        UserError: If `num_rows` is below 1.
    """
    _check_at_least_one("num_rows", num_rows)
    if num_rows >= len(rows):
        return list(rows)
    (drawn,) = _draw(rows, (num_rows,), seed)
    return drawn


def at_most(rows: Any, num_rows: int | None) -> Any:
    """Draws at most `num_rows` rows for evaluation; `None` keeps all rows.

    The draw does not depend on the run's seed, so that runs with different
    seeds are compared on the same examples.
    """
    return rows if num_rows is None else subsample(rows, num_rows, seed=0)


def hold_out(rows: Sequence[Any], seed: int) -> tuple[Any, Any]:
    """Holds out a tenth of the rows for validation; returns both parts.

    Args:
        rows: List of rows.
        seed: Integer.

    Returns:
        Two lists, the kept and the held-out rows, in their original order.

    Raises:
        UserError: If no row would be kept.
    """
    num_held_out = max(1, round(0.1 * len(rows)))
    _check_enough(rows, {"for training": 1, "held out": num_held_out})
    kept, held_out = _draw(rows, (len(rows) - num_held_out, num_held_out), seed)
    return kept, held_out


def hold_out_of_each_class(
    rows: Sequence[Any], seed: int
) -> tuple[list[Any], list[Any]]:
    """Holds out about a tenth of each class; returns both parts of the rows.

    If a class has two rows, one is held out. If it has a single row, none is
    held out.

    Args:
        rows: List of rows with a class id as `label`.
        seed: Integer.

    Returns:
        Two lists, the kept and the held-out rows, in their original order.
    """
    by_class = collections.defaultdict(list)
    for place, row in enumerate(rows):
        by_class[row["label"]].append(place)
    draw, held_out = random.Random(seed), set()
    for _, places in sorted(by_class.items()):
        if len(places) > 1:
            number = max(1, round(0.1 * len(places)))
            held_out.update(draw.sample(places, number))
    kept = [row for place, row in enumerate(rows) if place not in held_out]
    return kept, [rows[place] for place in sorted(held_out)]


def low_resource_split(
    train_rows: Sequence[Any],
    validation_rows: Sequence[Any],
    num_train: int,
    seed: int,
    num_validation: int = 1000,
) -> tuple[Any, Any, list[Any]]:
    """Simulates a low-resource task (He et al. 2021, section 3.2).

    From the training set, `num_train` rows are drawn for training and
    `num_validation` other rows for validation. The original validation set
    becomes the test set, because the labels of GLUE's test sets are secret.

    Args:
        train_rows: List of rows, the original training set.
        validation_rows: List of rows, the original validation set.
        num_train: Integer; the paper uses 1,000 and 5,000.
        seed: Integer. Equal seeds draw equal rows.
        num_validation: Integer. Defaults to the paper's 1,000.

    Returns:
        Three lists of rows, for training, validation and test. The training
        and validation rows are disjoint.

    Raises:
        UserError: If the training set has too few rows.
    """
    _check_at_least_one("num_train", num_train)
    _check_at_least_one("num_validation", num_validation)
    _check_enough(
        train_rows, {"for training": num_train, "validation": num_validation}
    )
    train, validation = _draw(train_rows, (num_train, num_validation), seed)
    return train, validation, list(validation_rows)


def fingerprints(rows: Any) -> dict[Any, str]:
    """Returns a dict from split to the SHA-256 of its rows.

    `rows` is a dict from split to rows; see `fingerprint`.
    """
    return {split: fingerprint(values) for split, values in rows.items()}


def fingerprint(rows: Any) -> str:
    """Returns the SHA-256 of rows in canonical JSON, as hexadecimal digits.

    Texts, labels and the order of rows change the fingerprint. The order of
    fields in a row does not.
    """
    digest = hashlib.sha256()
    for row in rows:
        line = json.dumps(row, sort_keys=True, separators=(",", ":"))
        digest.update(line.encode() + b"\n")
    return digest.hexdigest()


def _draw(rows: Any, sizes: Any, seed: int) -> list[Any]:
    """Draws one random list of rows for each size in `sizes`.

    The lists are disjoint, and each keeps the order of `rows`.
    """
    indices = random.Random(seed).sample(range(len(rows)), sum(sizes))
    drawn, start = [], 0
    for size in sizes:
        chosen = sorted(indices[start : start + size])
        drawn.append([rows[i] for i in chosen])
        start += size
    return drawn


def _check_at_least_one(name: str, value: Any) -> None:
    if value < 1:
        raise UserError(
            f"Invalid value for argument `{name}`: expected at least 1. "
            f"Received: {name}={value}"
        )


def _check_enough(rows: Any, sizes: Any) -> None:
    needed = sum(sizes.values())
    if len(rows) < needed:
        parts = " and ".join(f"{n} {what}" for what, n in sizes.items())
        raise UserError(
            f"The training set has too few rows: {parts} need {needed} rows. "
            f"Received: {len(rows)} rows. Ask for fewer."
        )
