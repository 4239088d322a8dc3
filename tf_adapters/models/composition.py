"""Combinations of trained adapters, as in the `adapters` library.

A composition is a tree. Each member is a method, a folder, a model or another
composition. `compose` converts folders and models to methods.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any

from tf_adapters.common.checks import checked_integers
from tf_adapters.common.checks import checked_numbers
from tf_adapters.common.errors import UserError
from tf_adapters.methods.registry import from_config
from tf_adapters.methods.registry import to_config


class Composition:
    """An ordered group of members: adapters, or other compositions.

    Args:
        *members: At least one composition, method, folder or model.
    """

    def __init__(self, *members: Any) -> None:
        if not members:
            raise UserError(f"A {type(self).__name__} needs members.")
        self.members = members

    def with_members(self, members: Iterable[Any]) -> "Composition":
        """Returns a copy of this composition with other members."""
        return type(self)(*members)

    def __repr__(self) -> str:
        inner = ", ".join(map(repr, self.members))
        return f"{type(self).__name__}({inner})"


class Stack(Composition):
    """Stacks adapters: each member reads the output of the previous one.

    This is how MAD-X puts a task adapter on top of a language adapter (Pfeiffer
    et al. 2020, arXiv:2005.00052, section 3.3). If an adapter reads normalized
    output, the norm is applied to the output of the adapter below. Of the
    invertible adapters, only the first member's is used. Both rules are those
    of the `adapters` library.

    Examples:
        >>> method = methods.Pfeiffer()
        >>> one = tf_adapters.adapt(encoder, method, name="one")
        >>> two = tf_adapters.adapt(encoder, method, head, name="two")
        >>> model = tf_adapters.compose(encoder, tf_adapters.Stack(one, two))
        >>> tuple(model(features).shape)
        (2, 2)
    """


class Average(Composition):
    """Averages adapters: computes the weighted mean of the members' outputs.

    With weights `w_i` and outputs `o_i`, the result is `sum_i w_i o_i`. Version
    1.3.0 of the `adapters` library also divides the result by the number of
    members.

    Args:
        *members: See `Composition`.
        weights: One number per member. Default: equal weights.
        normalize: Whether to divide the weights by their sum. Defaults to
            `True`.

    Examples:
        >>> one = tf_adapters.adapt(encoder, methods.LoRA(), head, name="one")
        >>> two = tf_adapters.adapt(encoder, methods.LoRA(), head, name="two")
        >>> model = tf_adapters.compose(
        ...     encoder, tf_adapters.Average(one, two, weights=(0.7, 0.3))
        ... )
        >>> tuple(model(features).shape)
        (2, 2)
    """

    def __init__(
        self,
        *members: Any,
        weights: Iterable[float] | None = None,
        normalize: bool = True,
    ) -> None:
        super().__init__(*members)
        weights = [1.0] * len(members) if weights is None else weights
        weights = checked_numbers("weights", weights)
        if len(weights) != len(members):
            raise UserError(
                f"An Average of {len(members)} members needs as many weights. "
                f"Received: weights={tuple(weights)}"
            )
        total = sum(weights) if normalize else 1.0
        # 0, but for rounding.
        if normalize and abs(total) <= 1e-9 * sum(map(abs, weights)):
            raise UserError(
                "The weights sum to 0, so they cannot be normalized. Pass "
                "normalize=False, or other weights."
            )
        self.weights = tuple(weight / total for weight in weights)

    def with_members(self, members: Iterable[Any]) -> "Average":
        return Average(*members, weights=self.weights, normalize=False)


class Parallel(Composition):
    """Runs adapters in parallel: each member processes the whole batch.

    Examples:
        >>> method = methods.Pfeiffer()
        >>> one = tf_adapters.adapt(encoder, method, head, name="one")
        >>> two = tf_adapters.adapt(encoder, methods.LoRA(), head, name="two")
        >>> model = tf_adapters.compose(encoder, tf_adapters.Parallel(one, two))
        >>> [tuple(outputs.shape) for outputs in model(features)]
        [(2, 2), (2, 2)]
    """


class BatchSplit(Composition):
    """Splits a batch: each member processes its own rows, in order.

    Args:
        *members: See `Composition`.
        batch_sizes: Number of rows for each member.

    Examples:
        >>> method = methods.Pfeiffer()
        >>> one = tf_adapters.adapt(encoder, method, head, name="one")
        >>> two = tf_adapters.adapt(encoder, methods.LoRA(), head, name="two")
        >>> split = tf_adapters.BatchSplit(one, two, batch_sizes=(1, 1))
        >>> outputs = tf_adapters.compose(encoder, split)(features)
        >>> [tuple(rows.shape) for rows in outputs]
        [(1, 2), (1, 2)]
    """

    def __init__(self, *members: Any, batch_sizes: Iterable[int]) -> None:
        super().__init__(*members)
        self.batch_sizes = tuple(checked_integers("batch_sizes", batch_sizes))
        are_counts = all(size >= 0 for size in self.batch_sizes)
        if len(self.batch_sizes) != len(members) or not are_counts:
            raise UserError(
                f"A BatchSplit of {len(members)} members needs a number of "
                f"rows for each. Received: batch_sizes={self.batch_sizes}"
            )

    def with_members(self, members: Iterable[Any]) -> "BatchSplit":
        return BatchSplit(*members, batch_sizes=self.batch_sizes)


def all_members(tree: Any) -> list[Any]:
    """Returns all members of a tree that are not compositions themselves."""
    if not isinstance(tree, Composition):
        return [tree]
    return [one for member in tree.members for one in all_members(member)]


def lowest(tree: Any) -> list[Any]:
    """Returns the members of a tree that have no other member below them."""
    if not isinstance(tree, Composition):
        return [tree]
    members = tree.members[:1] if isinstance(tree, Stack) else tree.members
    return [one for member in members for one in lowest(member)]


def check_nesting(tree: Any) -> None:
    """Raises a `UserError` if a Parallel or BatchSplit is not at the top."""
    hint = "Repeat the shared members: Parallel(Stack(a, b), Stack(a, c))."
    if isinstance(tree, Parallel | BatchSplit):
        hint = f"List all members in one: {type(tree).__name__}(a, b, c, ...)."
    for member in getattr(tree, "members", ()):
        if isinstance(member, Parallel | BatchSplit):
            raise UserError(
                f"A {type(member).__name__} gives several outputs, but each "
                f"member of a {type(tree).__name__} must give one. {hint}"
            )
        check_nesting(member)


def with_all_members(tree: Any, new: Iterator[Any]) -> Any:
    """Returns a tree of the same structure with new members.

    Args:
        tree: `Composition`, or a single member.
        new: Iterator over the new members, in the order of `all_members`.
    """
    if not isinstance(tree, Composition):
        return next(new)
    return tree.with_members(
        [with_all_members(one, new) for one in tree.members]
    )


def tree_to_config(
    tree: Any, member_to_config: Callable[[Any], dict[str, Any]] = to_config
) -> dict[str, Any]:
    """Returns a composition as plain values, for JSON.

    Args:
        tree: `Composition`, or a single member.
        member_to_config: Function that converts a member to plain values.
    """
    if not isinstance(tree, Composition):
        return member_to_config(tree)
    config: dict[str, Any] = {
        "composition": type(tree).__name__.lower(),
        "members": [tree_to_config(m, member_to_config) for m in tree.members],
    }
    if isinstance(tree, Average):
        config["weights"] = list(tree.weights)
    return config


def tree_from_config(
    config: dict[str, Any],
    member_from_config: Callable[[dict[str, Any]], Any] = from_config,
) -> Any:
    """Returns the composition that `tree_to_config` described.

    Args:
        config: Return value of `tree_to_config`.
        member_from_config: Function that makes a member from plain values.
    """
    if "composition" not in config:
        return member_from_config(config)
    members = [
        tree_from_config(m, member_from_config) for m in config["members"]
    ]
    if config["composition"] == "average":
        return Average(*members, weights=config["weights"], normalize=False)
    if config["composition"] == "stack":
        return Stack(*members)
    raise ValueError(f"composition: {config['composition']}")
