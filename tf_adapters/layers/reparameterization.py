"""Values that a forward pass uses in place of a model's own weights."""

import contextlib

import keras
from keras import ops
import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.layers.float32_layer import Float32Layer

# Between the parts of a variable's path, in a layer's name. Such names have no
# slashes, and PyTorch's no dots; adapter folders have had dots from the first.
_SEPARATOR = "--"


def name_for(variable):
    """Returns the name of the layer that gives a variable its value."""
    return variable.path.replace("/", _SEPARATOR)


def stored_name(variable):
    """Returns a variable's name in adapter folders and checkpoints."""
    return variable.path.replace(_SEPARATOR, ".")


class InnerScope(keras.StatelessScope):
    """Computed values inside of the scope that one may be in already.

    Keras asks the innermost scope only. On JAX it traces a model in a scope
    that holds all of the model's variables, and what is not computed here must
    still come from there: else it would be a constant without a gradient.
    """

    def get_current_value(self, variable):
        value = super().get_current_value(variable)
        if value is None and self.original_scope is not None:
            return self.original_scope.get_current_value(variable)
        return value


class Reparameterization(Float32Layer):
    """Functions from stored weights to the values that a forward pass uses.

    No layer of the encoder knows of it: a forward pass runs in a scope in which
    Keras gives a variable the value computed here. A gradient goes through the
    function to what is stored.

    A function is a layer called as `function.call(value, seeds)` with the
    variable's own value, and `StatelessSeeds` in training or else `None`; it
    returns a tensor of the same shape. Its trained weights at zero, it must
    return `value` in evaluation. If it has an attribute `replaces_dropout`, it
    does so whatever its weights are, and in training the model's dropout is
    off.

    Args:
        pairs: List of a variable and its function.
        folds: Function that returns a list of a kernel and a slot whose
            `folded(value)` is what the kernel holds once it is folded. A
            forward pass does not need it.
    """

    def __init__(self, pairs=(), folds=tuple, **kwargs):
        super().__init__(**kwargs)
        self.functions = [function for _, function in pairs]
        # Inside of a function: Keras takes the variables that it finds in an
        # attribute for the layer's own.
        self._pairs = lambda: tuple(pairs)
        self._folds = folds
        self._before_fold = None
        self.build(())

    def build(self, input_shape):
        """Builds nothing: it has no input. Keras's `summary` asks for one."""

    @property
    def output_shape(self):
        """For Keras's `summary`: it is called for no output."""
        return ()

    @property
    def replaces_dropout(self):
        """Whether dropout is off in training."""
        return any(map(_replaces_dropout, self.functions))

    @property
    def folded(self):
        """Whether the weights themselves hold the values for evaluation."""
        return self._before_fold is not None

    def _active(self, in_training):
        return [
            (variable, function)
            for variable, function in self._pairs()
            if in_training or not _replaces_dropout(function)
        ]

    def computed(self):
        """Returns the variables that have a function."""
        return [variable for variable, _ in self._pairs()]

    def scope(self, seeds=None):
        """Returns a context in which variables have the computed values.

        Args:
            seeds: `StatelessSeeds` in training, else `None`.

        Raises:
            UserError: If the model is to train while it is folded.
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

    def fold(self):
        """Writes the values of evaluation into the variables themselves.

        The functions' and slots' own weights become zero: so a graph that was
        traced before adds nothing a second time. Graphs that are traced from
        now on are without those slots.
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
        for variable in self.written()[len(values) :]:
            values.append((variable, np.zeros(variable.shape)))
        values = [(v, ops.convert_to_numpy(value)) for v, value in values]
        self._before_fold = [ops.convert_to_numpy(v) for v, _ in values]
        for variable, value in values:
            variable.assign(value)
        for _, slot in self._folds():
            slot.is_merged = True

    def unfold(self):
        """Gives all variables the values from before `fold`, exactly."""
        if not self.folded:
            return
        for variable, value in zip(
            self.written(), self._before_fold, strict=True
        ):
            variable.assign(value)
        for _, slot in self._folds():
            slot.is_merged = False
        self._before_fold = None

    def written(self):
        """Returns what `fold` writes: kernels, then the functions' weights."""
        pairs = [*self._active(in_training=False), *self._folds()]
        added = {id(v): v for _, layer in pairs for v in layer.weights}
        return [*(variable for variable, _ in pairs), *added.values()]

    @contextlib.contextmanager
    def folded_meanwhile(self):
        """Folds for the time of a `with` block, unless it is folded anyway."""
        folded_before = self.folded
        self.fold()
        try:
            yield
        finally:
            if not folded_before:
                self.unfold()

    def restart(self):
        """Tells the functions that training goes on from the present values."""
        for variable, function in self._pairs():
            if hasattr(function, "start_from"):
                function.start_from(ops.convert_to_numpy(variable))


def _replaces_dropout(function):
    return getattr(function, "replaces_dropout", False)
