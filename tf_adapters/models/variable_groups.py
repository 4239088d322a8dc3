"""Groups a model's weights by kind, and shows which of them train."""

from __future__ import annotations

from collections.abc import Iterable
import math
from typing import TYPE_CHECKING

from tf_adapters.common.errors import UserError
from tf_adapters.encoders import quantization
from tf_adapters.layers.reparameterization import stored_name

if TYPE_CHECKING:
    import keras

    from tf_adapters.models.assembled_model import AssembledModel
    from tf_adapters.models.multitask_model import MultiTaskModel

# The groups of the encoder's trained variables.
_OF_ENCODER = ("layer norms", "biases", "encoder kernels")


def variable_groups(
    model: AssembledModel,
) -> list[tuple[str, bool, list[keras.Variable]]]:
    """Groups a model's variables by kind.

    Returns a list of (group name, whether it trains, variables).

    Raises:
        UserError: If a variable of the model belongs to no group.
    """
    declared = {id(v) for v in model.declared_encoder_variables()}
    in_backbone = model.encoder.backbone.weights
    in_slots = _in_slots(model)
    in_functions = model.reparameterization.weights
    initial = [v for v in in_functions if not model.is_added(v)]
    added = [v for v in [*in_slots, *in_functions] if model.is_added(v)]
    head = [] if model.head_layer is None else model.head_layer.weights
    frozen = [v for v in in_backbone if id(v) not in declared]
    found = [
        ("adapters", True, added),
        ("head", True, head),
        *_by_kind([v for v in in_backbone if id(v) in declared]),
        # Slots also hold frozen weights, such as the members of a fusion.
        ("members", False, [v for v in in_slots if not model.is_added(v)]),
        ("initial weights", False, initial),
        ("encoder", False, frozen),
    ]
    _check_all_known(model, found)
    return [group for group in found if group[2]]


def trained_additions(model: AssembledModel) -> list[keras.Variable]:
    """Returns the trained variables that are not the encoder's own.

    Call this on a new model and keep the result: the user may freeze some of
    these variables later, and they must still be saved.
    """
    added = [*_in_slots(model), *model.reparameterization.weights]
    head = [] if model.head_layer is None else model.head_layer.weights
    return [v for v in [*added, *head] if v.trainable]


def by_stored_name(
    variables: Iterable[keras.Variable],
) -> dict[str, keras.Variable]:
    """Returns a dict of variables, keyed by their names in adapter folders.

    Raises:
        UserError: If two variables have the same name.
    """
    named = {}
    for variable in variables:
        name = stored_name(variable)
        if name in named:
            raise UserError(
                f"Two trained weights are called `{name}`: a slot's name must "
                "have the number of its block."
            )
        named[name] = variable
    return named


def _in_slots(model: AssembledModel) -> list[keras.Variable]:
    """Returns the variables of all slots of a model, each only once."""
    variables = (
        variable for slot in model.all_slots() for variable in slot.weights
    )
    return list({id(variable): variable for variable in variables}.values())


def _check_all_known(
    model: AssembledModel, found: list[tuple[str, bool, list[keras.Variable]]]
) -> None:
    known = {id(v) for _, _, variables in found for v in variables}
    for variable in model.weights:
        if id(variable) not in known:
            raise UserError(
                f"Variable `{variable.path}` belongs to neither the encoder, "
                "the method nor the head, so nothing says whether it trains."
            )


def _by_kind(
    variables: Iterable[keras.Variable],
) -> list[tuple[str, bool, list[keras.Variable]]]:
    """Groups trained encoder variables into norms, biases and others.

    Returns a list of (group name, `True` because it trains, variables).
    """
    kinds = {kind: [] for kind in _OF_ENCODER}
    for variable in variables:
        if variable.name in ("gamma", "beta"):
            kinds["layer norms"].append(variable)
        elif variable.name == "bias":
            kinds["biases"].append(variable)
        else:
            kinds["encoder kernels"].append(variable)
    return [(kind, True, group) for kind, group in kinds.items()]


def count_weights(variables: Iterable[keras.Variable]) -> int:
    """Returns the total number of elements of `variables`."""
    return sum(math.prod(variable.shape) for variable in variables)


def trained_table(model: AssembledModel | MultiTaskModel) -> str:
    """Returns a text table of the trained and frozen weights.

    Args:
        model: `AdapterModel` or `MultiTaskModel`.

    Raises:
        UserError: If `model` is another one, such as a `ParallelModel`.

    Examples:
        >>> model = tf_adapters.adapt(encoder, methods.Pfeiffer(units=4), head)
        >>> tf_adapters.trained_table(model).splitlines()[0].split()
        ['part', 'variables', 'weights', 'of', 'encoder']
    """
    if not hasattr(model, "variable_groups"):
        raise UserError(
            "Expected as `model` of `trained_table` an `AdapterModel` or a "
            "`MultiTaskModel`. Call it for each of the `models` of a "
            f"`ParallelModel`. Received: {model!r:.100}"
        )
    encoder_weights = quantization.count_weights(model.encoder.backbone)
    variable_groups = model.variable_groups()
    of_encoder = 0
    wide = max(16, *(len(part) for part, _, _ in variable_groups))

    def line(part: str, state: str, count: int, weights: int) -> str:
        fraction = weights / encoder_weights
        return (
            f"{part:<{wide}} {state:<7} {count:>9} {weights:>12,} "
            f"{fraction:>9.3%}"
        )

    lines = [
        f"{'part':<{wide}} {'':<7} {'variables':>9} {'weights':>12} "
        f"{'of encoder':>10}"
    ]
    for part, trains, variables in variable_groups:
        # The user may have frozen what the method trains.
        trains = trains and any(variable.trainable for variable in variables)
        state = "trains" if trains else "frozen"
        weights = count_weights(variables)
        if part == "encoder":
            # Elements of quantized variables may hold several weights each,
            # and scales are not counted as weights.
            weights = encoder_weights - of_encoder
        elif part in _OF_ENCODER:
            of_encoder += weights
        lines.append(line(part, state, len(variables), weights))
    trained = [
        variable
        for variable in model.trained_variables().values()
        if variable.trainable
    ]
    lines.append(
        line("all that trains", "", len(trained), count_weights(trained))
    )
    return "\n".join(lines)
