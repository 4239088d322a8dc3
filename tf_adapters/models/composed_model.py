"""Models of several trained adapters: Stack, Average, Parallel, BatchSplit."""

from collections.abc import Sequence
import os
from typing import Any

from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common import adapter_folder
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.encoders.encoder import Encoder
from tf_adapters.layers.reparameterization import stored_name
from tf_adapters.models import composed_members
from tf_adapters.models import composition as trees
from tf_adapters.models.adapter_model import AdapterModel
from tf_adapters.models.adapter_model import check_adapter_model
from tf_adapters.models.parallel_model import ParallelModel
from tf_adapters.models.trained_members import Member


def compose(
    encoder: Encoder,
    composition: trees.Composition,
    head: heads.Head | None = None,
    **options: Any,
) -> "AdapterModel | ParallelModel":
    """Returns a model of trained adapters and, optionally, a method to train.

    The members of a composition are adapter folders, models in memory, and
    other compositions. The last member of a stack may also be a method. It is
    trained while the adapters below it are frozen: this is how MAD-X trains a
    task adapter on top of a language adapter. `swap_adapters` then exchanges
    the language adapter.

    Args:
        encoder: `Encoder` that all members were trained on, freshly loaded.
        composition: `Stack`, `Average`, `Parallel` or `BatchSplit`.
        head: See `AdapterModel`. With `None` (default) and without a method,
            the model gets the last member's trained head, if it has one.
            In `Parallel` and `BatchSplit` this holds for each member.
        **options: See `AdapterModel`.

    Returns:
        `AdapterModel`, or a `ParallelModel` for `Parallel` and `BatchSplit`.

    Raises:
        UserError: If a member is missing, damaged, belongs to another encoder,
            trained weights of the encoder itself, or cannot be used at its
            position.

    Examples:
        >>> language = methods.Union((methods.Invertible(), methods.Pfeiffer()))
        >>> german = tf_adapters.adapt(encoder, language)
        >>> model = tf_adapters.compose(
        ...     encoder, tf_adapters.Stack(german, methods.Pfeiffer()), head
        ... )
        >>> tuple(model(features).shape)
        (2, 2)
    """
    trees.check_nesting(composition)
    if isinstance(composition, trees.Parallel | trees.BatchSplit):
        models = [
            compose(encoder, _as_composition(member), head, **options)
            for member in composition.members
        ]
        return ParallelModel(composition, models)
    composition, method = _top(composition)
    takes_head = method is None and head is None
    below = composed_members.read_composition(
        composition, encoder, with_head=takes_head
    )
    last = trees.all_members(below)[-1]
    takes_head = takes_head and last.head is not None
    model = AdapterModel(
        encoder,
        methods.HeadOnly() if method is None else method,
        last.head if takes_head else head,
        below=methods_of(below),
        **options,
    )
    load_below(model, below)
    if takes_head:
        of_head = {
            name: tensor
            for name, tensor in last.tensors.items()
            if name.startswith("head/")
        }
        variables = {v.path: v for v in model.head_layer.weights}
        adapter_folder.assign_tensors(variables, of_head, last.weights_source)
    return model


def _top(composition: Any) -> tuple[Any, methods.Method | None]:
    """Splits off the method to train, if the last member of a stack is one.

    Returns the composition of the other members, and the method or `None`.
    """
    is_tree = isinstance(composition, trees.Composition)
    members = list(composition.members) if is_tree else [composition]
    method = None
    if isinstance(members[-1], methods.Method):
        if not isinstance(composition, trees.Stack) or len(members) == 1:
            raise UserError(
                "A method trains on top of a Stack: Stack(adapter, method). "
                "`adapt` makes the model of a method alone."
            )
        method = members.pop()
        if isinstance(method, methods.Fusion):
            raise UserError(
                "A fusion cannot be stacked on other adapters. `fuse` makes "
                "its model."
            )
        composition = trees.Stack(*members)
    for member in trees.all_members(composition):
        if not isinstance(member, str | os.PathLike | AdapterModel):
            raise UserError(
                "Expected as a composition's member the folder of an adapter, "
                "a model that `adapt` or `load_adapter` returned, or, as the "
                f"last of a Stack, a method. Received: {shown(member)}"
            )
    return composition, method


def _as_composition(member: Any) -> trees.Composition:
    """Returns `member` if it is a composition, else a stack of it alone."""
    if isinstance(member, trees.Composition):
        return member
    return trees.Stack(member)


def load_below(model: AdapterModel, below: trees.Composition | Member) -> None:
    """Assigns the weights of a composition's members to a model's slots.

    Args:
        model: `AdapterModel` whose `below` has the same structure.
        below: Composition of `Member`s.

    Raises:
        AdapterError: If a member's weights do not match its configuration.
    """
    members, values = trees.all_members(below), []
    for member, slots in zip(members, model.slots_below, strict=True):
        variables = {stored_name(v): v for slot in slots for v in slot.weights}
        shapes = {name: v.shape for name, v in variables.items()}
        unpacked = member.method.gating.unpack(member.tensors, shapes)
        tensors = {
            name: tensor
            for name, tensor in unpacked.items()
            if not name.startswith("head/")
        }
        adapter_folder.check_tensors(variables, tensors, member.weights_source)
        values += [(v, tensors[name]) for name, v in variables.items()]
    # Assign only after all checks: the last member may be damaged.
    for variable, value in values:
        variable.assign(value)
    model.members = tuple(members)


def swap_adapters(
    model: AdapterModel,
    composition: trees.Composition | str | os.PathLike[str] | AdapterModel,
) -> None:
    """Replaces the frozen adapters below the trained one.

    Args:
        model: `AdapterModel` that `compose` made.
        composition: Folder or model, or a composition of them, with the same
            structure as the adapters to replace. For example, the adapter
            of another language (MAD-X).

    Raises:
        UserError: If the model has no adapters below, the methods differ, or
            the model is folded.

    Examples:
        >>> german = tf_adapters.adapt(encoder, methods.Pfeiffer())
        >>> french = tf_adapters.adapt(encoder, methods.Pfeiffer())
        >>> model = tf_adapters.compose(
        ...     encoder, tf_adapters.Stack(german, methods.LoRA()), head
        ... )
        >>> tf_adapters.swap_adapters(model, french)
    """
    check_adapter_model(model, "swap_adapters")
    if model.below is None:
        raise UserError("This model has no adapters below its own.")
    model.check_not_folded()
    below = composed_members.read_composition(
        _as_composition(composition), model.encoder_info
    )
    wanted = trees.tree_to_config(model.below)
    found = trees.tree_to_config(methods_of(below))
    if wanted != found:
        raise UserError(
            "Only adapters of the same methods and settings can be swapped. "
            f"Wanted: {wanted}. Received: {found}"
        )
    load_below(model, below)


def restore(
    config: dict[str, Any],
    members: Sequence[Member],
    composition: trees.Composition
    | str
    | os.PathLike[str]
    | AdapterModel
    | None,
    encoder: Encoder,
    folder: str | os.PathLike[str],
) -> trees.Composition | Member | None:
    """Returns the composition of `Member`s below a stored adapter, or `None`.

    Args:
        config: Content of `adapter_config.json`. The recorded composition is
            in the entry `below`.
        members: The `Member`s recorded there, in the composition's order.
        composition: Folder or model to use instead, or a composition of
            them, or `None` for the recorded members.
        encoder: The members' `Encoder`, freshly loaded.
        folder: Folder of the stored adapter, for error messages.

    Raises:
        AdapterError: If the composition in `config` is damaged.
    """
    if composition is not None:
        return composed_members.read_composition(
            _as_composition(composition), encoder
        )
    if not config.get("below"):
        return None
    try:
        tree = trees.tree_from_config(config["below"], dict)
        if len(trees.all_members(tree)) != len(members):
            raise ValueError("members")
        return composed_members.placed(tree, members, encoder)
    except AdapterError:  # Of a member that fits no composition: not damaged.
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise AdapterError(
            f"{folder}: its `below` is damaged. Copy it again from where it "
            "was trained."
        ) from error


def methods_of(
    below: trees.Composition | Member | None,
) -> trees.Composition | methods.Method | None:
    """Returns a composition in which each `Member` is replaced by its method.

    If there is no composition (`None`), returns `None`.
    """
    if below is None:
        return None
    members = trees.all_members(below)
    return trees.with_all_members(below, (m.method for m in members))
