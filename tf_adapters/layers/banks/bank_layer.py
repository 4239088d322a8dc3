"""The base class of a bank's layers, and classes for an adapter's weights."""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses
import math
import typing
from typing import Any

from keras import ops
import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.common.types import Tensor
from tf_adapters.layers.banks import rows as row_lib
from tf_adapters.layers.float32_layer import Float32Layer

# The widths to which weights are padded.
WIDTHS = (8, 16, 64, 256)


@dataclasses.dataclass(frozen=True)
class Kind:
    """The class, settings and shapes that determine a layer of a bank.

    At one place of the encoder, adapters with weights of the same `Kind` share
    a layer.

    Attributes:
        layer: Subclass of `BankLayer`.
        settings: Settings of the layer, pairs of name and value.
        shapes: The shapes of a row's weights, pairs of name and shape.
    """

    layer: type[BankLayer]
    settings: tuple[tuple[str, Any], ...]
    shapes: tuple[tuple[str, tuple[int, ...]], ...]

    @property
    def num_bytes(self) -> int:
        """The number of bytes that one adapter's weights take in the layer."""
        return 4 * sum(math.prod(shape) for _, shape in self.shapes)

    def make_layer(self, num_rows: int, column: int, name: str) -> BankLayer:
        """Creates a layer of this kind whose `num_rows` rows have no effect.

        See `BankLayer` for the arguments.
        """
        layer = self.layer(
            dict(self.shapes),
            num_rows,
            column,
            **dict(self.settings),
            name=name,
        )
        layer.build()
        return layer


@dataclasses.dataclass(frozen=True)
class Part:
    """The weights that one adapter has in one row of a bank's layer.

    Made by `BankLayer.part`.

    Attributes:
        kind: `Kind` of the layer.
        arrays: Dict from the name of a weight to its padded array.
    """

    kind: Kind
    arrays: dict[str, np.ndarray]


def padded_width(width: int) -> int:
    """Returns the smallest of `WIDTHS` (8, 16, 64, 256) that fits `width`.

    Raises:
        UserError: If `width` is larger than the largest of them.
    """
    for padded in WIDTHS:
        if width <= padded:
            return padded
    raise UserError(
        f"A bank holds widths (of a bottleneck, a rank, a prefix, a number of "
        f"classes) of at most {WIDTHS[-1]}. Received: {width}."
    )


class BankLayer(Float32Layer):
    """Holds a row of weights for each adapter at one place of an encoder.

    Row 0 is neutral: it changes nothing. The weights do not train. Subclasses
    list the weights that are padded, in `width_axes`.

    Args:
        shapes: Dict from the name of a weight to the shape of a row.
        num_rows: Integer. Number of rows, including row 0.
        column: Integer. The column of `adapter_rows` with this layer's rows.
        **kwargs: See `keras.layers.Layer`.
    """

    # Dict from the name of a padded weight to the axis that is padded.
    width_axes: typing.ClassVar[dict[str, int]] = {}
    # Dict from the name of a padded weight to its padding, if that is not 0.
    padding: typing.ClassVar[dict[str, float]] = {}
    # The value of the weights in row 0.
    neutral: typing.ClassVar[str] = "zeros"
    # Whether the layer returns one vector for all tokens of a text. Computing
    # it for all texts costs less than selecting those that use it.
    is_vector: typing.ClassVar[bool] = False

    def __init__(
        self,
        shapes: dict[str, tuple[int, ...]],
        num_rows: int,
        column: int,
        **kwargs: Any,
    ) -> None:
        super().__init__(**{"trainable": False, **kwargs})
        self.shapes = shapes
        self.num_rows = num_rows
        self.column = column

    def build(self, input_shape: Sequence[Any] | None = None) -> None:
        for name, shape in self.shapes.items():
            weight = self.add_weight(
                (self.num_rows, *shape), self.neutral, name=name
            )
            setattr(self, name, weight)

    @classmethod
    def part(cls, arrays: dict[str, Any], **settings: Any) -> Part:
        """Pads the weights of an adapter and returns them as a `Part`.

        Args:
            arrays: Dict from the name of a weight to its value: a variable,
                tensor or array.
            **settings: Settings of the layer.
        """
        padded = {
            name: cls._padded(name, ops.convert_to_numpy(value))
            for name, value in arrays.items()
        }
        shapes = tuple((name, value.shape) for name, value in padded.items())
        kind = Kind(cls, tuple(sorted(settings.items())), shapes)
        return Part(kind, padded)

    @classmethod
    def _padded(cls, name: str, array: np.ndarray) -> np.ndarray:
        array = np.asarray(array, "float32")
        axis = cls.width_axes.get(name)
        if axis is None:
            return array
        missing = padded_width(array.shape[axis]) - array.shape[axis]
        widths = [(0, 0)] * array.ndim
        widths[axis] = (0, missing)
        value = cls.padding.get(name, 0.0)
        return np.pad(array, widths, constant_values=value)

    def write(self, row: int, arrays: dict[str, np.ndarray]) -> None:
        """Writes an adapter's weights to row `row` of the layer's variables.

        `arrays` is a dict from the name of a weight to its array.
        """
        for name, value in arrays.items():
            row_lib.assign_row(getattr(self, name), row, value)

    def copy_rows(self, other: BankLayer) -> None:
        """Copies all rows of `other` to the first rows of this layer.

        `other` is a layer of the same kind with fewer rows.
        """
        for name in self.shapes:
            old = ops.convert_to_numpy(getattr(other, name))
            new = ops.convert_to_numpy(getattr(self, name)).copy()
            new[: len(old)] = old
            getattr(self, name).assign(new)

    def take(self, name: str, adapter_rows: Tensor) -> Tensor:
        """Returns the weight `name` of each example's adapter, `(batch, ...)`.

        Args:
            name: Name of the weight.
            adapter_rows: See `Context`.
        """
        rows = adapter_rows[:, self.column]
        return row_lib.take_rows(getattr(self, name), rows)

    def vectors(self, name: str, adapter_rows: Tensor, dtype: str) -> Tensor:
        """Returns the weight `name` of each example's adapter, a vector.

        The shape is `(batch, 1, d)`, and the type is `dtype`.
        """
        vectors = ops.cast(self.take(name, adapter_rows), dtype)
        return ops.expand_dims(vectors, 1)

    def multiply(self, x: Tensor, name: str, adapter_rows: Tensor) -> Tensor:
        """Multiplies each example of `x` by its own adapter's kernel `name`."""
        rows = adapter_rows[:, self.column]
        return row_lib.multiply(x, getattr(self, name), rows)

    def is_used(self, adapter_rows: Tensor) -> Tensor:
        """Returns whether each example's adapter has a row in this layer.

        The result is a boolean tensor of shape `(batch,)`.
        """
        return adapter_rows[:, self.column] > 0
