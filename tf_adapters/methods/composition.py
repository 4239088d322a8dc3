"""Trained adapters together in one encoder, as the `adapters` library has them.

A composition is a tree, and its leaves are methods, or what `compose` makes
methods of: folders and models.
"""

import numbers

from tf_adapters.common.errors import UserError
from tf_adapters.layers import composed_slots
from tf_adapters.layers.slot import PROJECTIONS
from tf_adapters.methods.baselines import HeadOnly
from tf_adapters.methods.invertible import Invertible
from tf_adapters.methods.method import from_config
from tf_adapters.methods.method import to_config
from tf_adapters.methods.union import Union


class Composition:
    """Members in an order.

    Args:
        *members: At least one composition, method, folder or model.
    """

    def __init__(self, *members):
        if not members:
            raise UserError(f"A {type(self).__name__} needs members.")
        self.members = members

    def with_members(self, members):
        """Returns this composition of other members."""
        return type(self)(*members)

    def __repr__(self):
        inner = ", ".join(map(repr, self.members))
        return f"{type(self).__name__}({inner})"


class Stack(Composition):
    """Each member reads what the one before it put out.

    So MAD-X puts a task's adapter on a language's (Pfeiffer et al. 2020,
    arXiv:2005.00052, section 3.3). Where an adapter reads the normed output it
    norms what the one below put out, as in the `adapters` library. As there,
    of invertible adapters the first member's alone maps the embeddings.

    Examples:
        >>> method = methods.Pfeiffer()
        >>> one = tf_adapters.adapt(encoder, method, name="one")
        >>> two = tf_adapters.adapt(encoder, method, head, name="two")
        >>> model = tf_adapters.compose(encoder, tf_adapters.Stack(one, two))
        >>> tuple(model(features).shape)
        (2, 2)
    """


class Average(Composition):
    """The weighted mean of what its members put out.

    `sum_i w_i o_i`. Version 1.3.0 of the `adapters` library divides it by the
    number of members once more.

    Args:
        *members: See `Composition`.
        weights: Number for each member. Default: all the same.
        normalize: Whether the weights are divided by their sum. Defaults to
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

    def __init__(self, *members, weights=None, normalize=True):
        super().__init__(*members)
        weights = [1.0] * len(members) if weights is None else list(weights)
        are_numbers = all(isinstance(w, numbers.Real) for w in weights)
        if len(weights) != len(members) or not are_numbers:
            raise UserError(
                f"An Average of {len(members)} members has as many weights. "
                f"Received: weights={tuple(weights)}"
            )
        total = sum(weights) if normalize else 1.0
        if not total:
            raise UserError(
                "The weights' sum is 0, so they cannot be normalized. Pass "
                "normalize=False, or other weights."
            )
        self.weights = tuple(weight / total for weight in weights)

    def with_members(self, members):
        return Average(*members, weights=self.weights, normalize=False)


class Parallel(Composition):
    """Each member answers the whole batch.

    Examples:
        >>> method = methods.Pfeiffer()
        >>> one = tf_adapters.adapt(encoder, method, head, name="one")
        >>> two = tf_adapters.adapt(encoder, methods.LoRA(), head, name="two")
        >>> model = tf_adapters.compose(encoder, tf_adapters.Parallel(one, two))
        >>> [tuple(outputs.shape) for outputs in model(features)]
        [(2, 2), (2, 2)]
    """


class BatchSplit(Composition):
    """Each member answers some of a batch's rows, in their order.

    Args:
        *members: See `Composition`.
        batch_sizes: Number of rows of each member.

    Examples:
        >>> method = methods.Pfeiffer()
        >>> one = tf_adapters.adapt(encoder, method, head, name="one")
        >>> two = tf_adapters.adapt(encoder, methods.LoRA(), head, name="two")
        >>> split = tf_adapters.BatchSplit(one, two, batch_sizes=(1, 1))
        >>> outputs = tf_adapters.compose(encoder, split)(features)
        >>> [tuple(rows.shape) for rows in outputs]
        [(1, 2), (1, 2)]
    """

    def __init__(self, *members, batch_sizes):
        super().__init__(*members)
        self.batch_sizes = tuple(batch_sizes)
        are_counts = all(
            isinstance(size, numbers.Integral) and size >= 0
            for size in self.batch_sizes
        )
        if len(self.batch_sizes) != len(members) or not are_counts:
            raise UserError(
                f"A BatchSplit of {len(members)} members has a number of rows "
                f"for each. Received: batch_sizes={self.batch_sizes}"
            )

    def with_members(self, members):
        return BatchSplit(*members, batch_sizes=self.batch_sizes)


def leaves(tree):
    """Returns the leaves of a composition, in their order."""
    if not isinstance(tree, Composition):
        return [tree]
    return [leaf for member in tree.members for leaf in leaves(member)]


def lowest(tree):
    """Returns the leaves of a composition that nothing stands below."""
    if not isinstance(tree, Composition):
        return [tree]
    members = tree.members[:1] if isinstance(tree, Stack) else tree.members
    return [leaf for member in members for leaf in lowest(member)]


def without_map(method):
    """Returns a method without its map of the embeddings, if it has one."""
    parts = method.parts if isinstance(method, Union) else (method,)
    kept = tuple(part for part in parts if not isinstance(part, Invertible))
    if len(kept) == len(parts):
        return method
    if not kept:
        return HeadOnly()
    return kept[0] if len(kept) == 1 else Union(kept)


def check_nesting(tree):
    """Raises a `UserError` if answers side by side are within another tree."""
    for member in getattr(tree, "members", ()):
        if isinstance(member, Parallel | BatchSplit):
            raise UserError(
                f"A {type(member).__name__} gives several answers, and a "
                f"{type(tree).__name__} goes on from one. Put what they share "
                "into each: Parallel(Stack(a, b), Stack(a, c))."
            )
        check_nesting(member)


def with_leaves(tree, new):
    """Returns a composition with other leaves.

    Args:
        tree: `Composition`, or a leaf.
        new: Iterator over the new leaves, in the order of `leaves`.
    """
    if not isinstance(tree, Composition):
        return next(new)
    return tree.with_members([with_leaves(one, new) for one in tree.members])


def tree_to_config(tree, leaf_to_config=to_config):
    """Returns a composition as plain values."""
    if not isinstance(tree, Composition):
        return leaf_to_config(tree)
    config = {
        "composition": type(tree).__name__.lower(),
        "members": [tree_to_config(m, leaf_to_config) for m in tree.members],
    }
    if isinstance(tree, Average):
        config["weights"] = list(tree.weights)
    return config


def tree_from_config(config, leaf_from_config=from_config):
    """Returns the composition that `tree_to_config` described."""
    if "composition" not in config:
        return leaf_from_config(config)
    members = [tree_from_config(m, leaf_from_config) for m in config["members"]]
    if config["composition"] == "average":
        return Average(*members, weights=config["weights"], normalize=False)
    if config["composition"] == "stack":
        return Stack(*members)
    raise ValueError(f"composition: {config['composition']}")


def put_below(tree, blocks, embeddings, shape):
    """Returns slots with a composition's frozen ones below them.

    Args:
        tree: `Composition` of methods, or a method.
        blocks: What `Method.make_slots` returned.
        embeddings: What `Method.make_embedding_slots` returned.
        shape: `EncoderShape`.

    Returns:
        Slots of the blocks, slots of the embeddings, and for each leaf a list
        of its own slots.
    """
    below, below_embeddings, own = _slots_of(tree, shape)
    _check_top(below_embeddings, embeddings)
    for slots in (*blocks, embeddings):
        _build(slots, shape)
    blocks = [
        _stacked([lower, upper])
        for lower, upper in zip(below, blocks, strict=True)
    ]
    return blocks, {**below_embeddings, **embeddings}, own


def _check_top(below, embeddings):
    """Refuses slots of the embeddings on top that have no place there."""
    if any(slot.inverse for slot in embeddings.values()):
        raise UserError(
            "Of the invertible adapters of a Stack only the first member's "
            "maps the embeddings, so that of a method on top would not train. "
            "Take the method without an Invertible."
        )
    if set(below) & set(embeddings):
        raise _two_in(set(below) & set(embeddings))


def _two_in(places):
    return UserError(
        f"Two members of a Stack change the embeddings ({', '.join(places)}), "
        "and there is room for one: a prompt, say, has no place on an "
        "invertible adapter. Leave one of the two out."
    )


def _slots_of(tree, shape):
    if not isinstance(tree, Composition):
        return _frozen_slots(tree, shape)
    found = [_slots_of(member, shape) for member in tree.members]
    blocks, embeddings, own = zip(*found, strict=True)
    if isinstance(tree, Average):
        if any(embeddings):
            # The output layer could not undo a mean of maps.
            raise UserError(
                "An Average has no meaning for what changes the embeddings, "
                "an Invertible for example. Average adapters without it."
            )
        joined = [
            _averaged(dicts, tree.weights)
            for dicts in zip(*blocks, strict=True)
        ]
    else:
        # Of maps the lowest alone is left here, of what a plug-in adds, all.
        if any(embeddings[1:]):
            raise _two_in(set().union(*embeddings))
        joined = [_stacked(dicts) for dicts in zip(*blocks, strict=True)]
    return joined, embeddings[0], [slots for part in own for slots in part]


def _frozen_slots(method, shape):
    blocks = method.make_slots(shape)
    embeddings = method.make_embedding_slots(shape)
    slots = [s for places in (*blocks, embeddings) for s in places.values()]
    is_longer = any(slot.num_added_tokens for slot in slots)
    if "keys_and_values" in set().union(*blocks) or is_longer:
        raise UserError(
            f"A {type(method).__name__} changes the length of the text or of "
            "its keys, and a composition has no place for that."
        )
    for places in (*blocks, embeddings):
        _build(places, shape)
    for slot in slots:
        slot.trainable = False
    return blocks, embeddings, [slots]


def _build(slots, shape):
    # Here, so that weights are called as in the adapter's own folder.
    for place, slot in slots.items():
        if not slot.built:
            slot.build((None, None, shape.read_in(place)))


def _stacked(dicts):
    for number, lower in enumerate(dicts):
        _check_below(lower, set().union(*dicts[number + 1 :]))
    joined = {}
    for place in _places(dicts):
        slots = [slots[place] for slots in dicts if place in slots]
        if len(slots) > 1 and place in PROJECTIONS:
            raise UserError(
                f"Two members of a Stack change the projection `{place}`. One "
                "on the other they have no meaning there; take an Average."
            )
        joined[place] = slots[0] if len(slots) == 1 else _stack_of(slots)
    return joined


def _check_below(lower, upper_places):
    """Refuses slots behind a norm that something of their sublayer is above."""
    for sublayer in ("after_attention", "after_ffn"):
        behind = f"{sublayer}_norm"
        if behind in lower and {sublayer, behind} & upper_places:
            raise UserError(
                "Below another member of a Stack an adapter has no place "
                f"behind the pretrained norm (`{behind}`): the other would not "
                'read what it puts out. Take pretrained_norm="after" or '
                '"both", or make it the last.'
            )


def _stack_of(slots):
    return composed_slots.StackSlot(slots, name=f"{slots[-1].name}_stack")


def _averaged(dicts, weights):
    return {
        place: _average_of([d.get(place) for d in dicts], weights, place)
        for place in _places(dicts)
    }


def _average_of(slots, weights, place):
    there = [(s, w) for s, w in zip(slots, weights, strict=True) if s]
    members, their_weights = zip(*there, strict=True)
    cls = composed_slots.AverageSlot
    if place in PROJECTIONS:
        cls = composed_slots.AverageOfProjections
    return cls(
        members,
        their_weights,
        # A member that has nothing here puts out what it reads.
        sum(weights) - sum(their_weights),
        name=f"{members[0].name}_average",
    )


def _places(dicts):
    return list(dict.fromkeys(place for slots in dicts for place in slots))
