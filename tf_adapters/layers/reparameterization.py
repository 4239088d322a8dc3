"""Computed values that a forward pass uses instead of a model's weights."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
from typing import TYPE_CHECKING
from typing import Any

import keras
from keras import ops
import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.common.types import Tensor
from tf_adapters.layers.float32_layer import Float32Layer

if TYPE_CHECKING:
    from tf_adapters.layers.slot import Slot
    from tf_adapters.layers.stateless_seeds import StatelessSeeds

# Replaces the slashes of a variable's path in a layer's name. Keras does not
# allow slashes in names, and PyTorch does not allow dots. Adapter folders of
# all versions use dots instead.
_SEPARATOR = "--"


def name_for(variable: keras.Variable) -> str:
    """Returns a name for the layer that computes a variable's value.

    It is the variable's path, with each slash replaced by `--`.
    """
    return variable.path.replace("/", _SEPARATOR)


def stored_name(variable: keras.Variable) -> str:
    """Returns a variable's name in adapter folders and checkpoints."""
    return variable.path.replace(_SEPARATOR, ".")


class InnerScope(keras.StatelessScope):
    """A `StatelessScope` that falls back to the scope around it.

    Keras looks up a variable only in the innermost scope. On JAX, Keras traces
    a model in a scope that holds all of the model's variables. A variable
    without a computed value must still be looked up there, or it would be a
    constant without a gradient.

    Unlike its parent, this class does not cast values to the variables' types.

    Args:
        pairs: Iterable of pairs of a variable and its value, a tensor of the
            same shape.
    """

    def __init__(self, pairs: Iterable[tuple[keras.Variable, Tensor]]) -> None:
        super().__init__()
        for pair in pairs:
            self.add_update(pair)

    def get_current_value(self, variable: keras.Variable) -> Tensor | None:
        value = super().get_current_value(variable)
        if value is None and self.original_scope is not None:
            return self.original_scope.get_current_value(variable)
        return value


class Reparameterization(Float32Layer):
    """Computes values that replace stored variables in a forward pass.

    The layers of the encoder do not change. A forward pass runs in a scope in
    which Keras replaces a variable's value by the value computed here.
    Gradients flow through this computation to the stored weights.

    Here, a function is a layer that is called as `function.call(value, seeds)`,
    where `value` is the variable's own value, and `seeds` is `StatelessSeeds`
    in training and `None` otherwise. The function returns a tensor of the same
    shape as `value`. In evaluation, it must return `value` if its trained
    weights are zero. If it has a true attribute `replaces_dropout`, it must
    always return `value` in evaluation, and the model's dropout is disabled in
    training.

    Args:
        pairs: List of pairs of a variable and its function.
        folds: Function that returns a list of pairs of a kernel and a slot.
            `slot.folded(kernel)` is the value that `fold` writes to the kernel.
            A forward pass does not use this value.
        **kwargs: See `keras.layers.Layer`.
    """

    def __init__(
        self,
        pairs: Sequence[tuple[keras.Variable, keras.layers.Layer]] = (),
        folds: "Callable[[], Sequence[tuple[keras.Variable, Slot]]]" = tuple,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.functions = [function for _, function in pairs]
        # Wrapped in a function: Keras would track variables in an attribute as
        # the layer's own.
        self._pairs = lambda: tuple(pairs)
        self._folds = folds
        # Function that undoes `fold`, or `None` if nothing is folded.
        self._undo_fold: Callable[[], None] | None = None
        self.build(())

    def build(self, input_shape: Sequence[Any] | None) -> None:
        """Does nothing; Keras's `summary` requires the method."""

    @property
    def output_shape(self) -> tuple[()]:
        """An empty shape, for Keras's `summary`; the layer has no output."""
        return ()

    @property
    def replaces_dropout(self) -> bool:
        """Whether the model's dropout is disabled in training."""
        return any(map(_replaces_dropout, self.functions))

    @property
    def folded(self) -> bool:
        """Whether `fold` has merged the adapter into the encoder."""
        return self._undo_fold is not None

    def _active(
        self, in_training: bool
    ) -> list[tuple[keras.Variable, keras.layers.Layer]]:
        return [
            (variable, function)
            for variable, function in self._pairs()
            if in_training or not _replaces_dropout(function)
        ]

    def computed(self) -> list[keras.Variable]:
        """Returns the variables that have computed values in a forward pass."""
        return [variable for variable, _ in self._pairs()]

    def scope(
        self, seeds: "StatelessSeeds | None" = None
    ) -> contextlib.AbstractContextManager[Any]:
        """Returns a context manager in which variables have computed values.

        Args:
            seeds: `StatelessSeeds` in training, else `None`.

        Raises:
            UserError: If `seeds` are given while the weights are folded.
        """
        if self.folded and seeds is not None:
            raise UserError(
                "The trained weights are folded into the encoder's, so they "
                "cannot train. Call `unfold()` first."
            )
        active = [] if self.folded else self._active(seeds is not None)
        if not active:
            return contextlib.nullcontext()
        return InnerScope(
            [
                (v, function.call(ops.convert_to_tensor(v), seeds))
                for v, function in active
            ]
        )

    def fold(self) -> None:
        """Merges the adapter into the encoder's variables.

        Each variable gets the value that the encoder uses in evaluation, with
        the adapter's change included. The adapter's own weights (in weight
        functions and slots) are then set to zero, so that a graph traced
        earlier does not apply the change twice. Graphs that are traced later
        omit the slots. `unfold` reverses this.
        """
        if self.folded:
            return
        values = [
            (variable, function.call(ops.convert_to_tensor(variable)))
            for variable, function in self._active(in_training=False)
        ] + [
            (kernel, slot.folded(ops.convert_to_tensor(kernel)))
            for kernel, slot in self._folds()
        ]
        values += [
            (variable, np.zeros(variable.shape))
            for variable in self.written()[len(values) :]
        ]
        values = [(v, ops.convert_to_numpy(value)) for v, value in values]
        before = [(v, ops.convert_to_numpy(v)) for v, _ in values]
        # Later, blocks may be left out that are not now, and the reverse.
        slots = [slot for _, slot in self._folds()]
        self._undo_fold = lambda: _assign(before, slots, is_folded=False)
        _assign(values, slots, is_folded=True)

    def unfold(self) -> None:
        """Restores the exact values that all variables had before `fold`."""
        if self._undo_fold is not None:
            self._undo_fold()
            self._undo_fold = None

    def written(self) -> list[keras.Variable]:
        """Returns the variables that `fold` writes.

        The encoder's variables come first, followed by the weights of the
        functions and slots, which `fold` sets to zero.
        """
        pairs = [*self._active(in_training=False), *self._folds()]
        added = {id(v): v for _, layer in pairs for v in layer.weights}
        return [*(variable for variable, _ in pairs), *added.values()]

    @contextlib.contextmanager
    def folded_meanwhile(self) -> Iterator[None]:
        """Context manager that calls `fold` first, and `unfold` at the end.

        It has no effect if the weights are folded already.
        """
        folded_before = self.folded
        self.fold()
        try:
            yield
        finally:
            if not folded_before:
                self.unfold()

    def restart(self) -> None:
        """Sets mixout's initial values to the variables' current values."""
        for variable, function in self._pairs():
            if hasattr(function, "start_from"):
                function.start_from(ops.convert_to_numpy(variable))


def _assign(
    values: Iterable[tuple[keras.Variable, np.ndarray]],
    slots: "Iterable[Slot]",
    is_folded: bool,
) -> None:
    for variable, value in values:
        variable.assign(value)
    for slot in slots:
        slot.is_folded = is_folded


def _replaces_dropout(function: keras.layers.Layer) -> bool:
    return getattr(function, "replaces_dropout", False)
