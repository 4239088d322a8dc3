"""Converts tensors between our names and layouts and another library's."""

import dataclasses
from pathlib import Path
import typing

import numpy as np

from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import some

Layout = typing.Literal["same", "transposed", "column", "row", "flat"]


@dataclasses.dataclass(frozen=True)
class TensorName:
    """A tensor's names in both libraries, and its layout in the other one.

    Attributes:
        ours: The name in our adapter folders.
        theirs: The other library's names; several if it stores copies.
        layout: The other library's layout of our tensor: `"same"`;
            `"transposed"`, `(outputs, inputs)` as in PyTorch's linear layers
            instead of `(inputs, outputs)`; `"column"` or `"row"`, a matrix
            for our vector; or `"flat"`, a vector for our matrix.
        rows: Number of rows of our matrix, if `layout` is `"flat"`.
    """

    ours: str
    theirs: tuple[str, ...]
    layout: Layout = "same"
    rows: int = 0

    def within(self, ours: str, *theirs: str) -> typing.Self:
        """Returns a copy in which all names begin with a module's name.

        Args:
            ours: Prefix of our name.
            *theirs: Prefix of their names; several if the module is stored
                several times.
        """
        copies = [f"{start}{name}" for start in theirs for name in self.theirs]
        return dataclasses.replace(
            self, ours=f"{ours}{self.ours}", theirs=tuple(copies)
        )

    def to_ours(self, tensor: np.ndarray) -> np.ndarray | None:
        """Converts the other library's tensor to our layout.

        Returns `None` if the tensor's shape does not suit the layout.
        """
        if self.layout == "transposed":
            return tensor.T if tensor.ndim == 2 else None
        if self.layout == "flat":
            is_matrix = tensor.ndim == 1 and tensor.size % self.rows == 0
            return tensor.reshape(self.rows, -1) if is_matrix else None
        if self.layout == "same":
            return tensor
        axis = 1 if self.layout == "column" else 0
        is_vector = tensor.ndim == 2 and tensor.shape[axis] == 1
        return tensor.reshape(-1) if is_vector else None

    def to_theirs(self, tensor: np.ndarray) -> np.ndarray:
        """Converts our tensor to the other library's layout."""
        return {
            "same": lambda: tensor,
            "transposed": lambda: tensor.T,
            "flat": lambda: tensor.reshape(-1),
            "column": lambda: tensor.reshape(-1, 1),
            "row": lambda: tensor.reshape(1, -1),
        }[self.layout]()


def linear(ours: str, theirs: str) -> list[TensorName]:
    """Returns the `TensorName`s of a linear layer's kernel and bias.

    Args:
        ours: Prefix of our names.
        theirs: The layer's name in PyTorch, or `""` if the tensors' names do
            not include it.
    """
    start = f"{theirs}." if theirs else ""
    return [
        TensorName(f"{ours}kernel", (f"{start}weight",), "transposed"),
        TensorName(f"{ours}bias", (f"{start}bias",)),
    ]


def norm(ours: str, *theirs: str) -> list[TensorName]:
    """Returns the `TensorName`s of a norm's weights.

    Args:
        ours: Prefix of our names.
        *theirs: The module's name in PyTorch; several if it is stored several
            times.
    """
    return [
        TensorName(f"{ours}{mine}", tuple(f"{name}.{part}" for name in theirs))
        for mine, part in (("gamma", "weight"), ("beta", "bias"))
    ]


def to_ours(
    names: list[TensorName],
    tensors: dict[str, np.ndarray],
    source: Path,
    hint: str = "",
) -> dict[str, np.ndarray]:
    """Converts another library's tensors to our names and layouts, in float32.

    Args:
        names: List of `TensorName`.
        tensors: Dict from another library's names to arrays.
        source: Path, for errors.
        hint: Sentence to add if a tensor is missing or unexpected. Defaults to
            `""`.

    Raises:
        AdapterError: If a tensor is missing or unexpected, has a wrong shape,
            or differs from its copy.
    """
    missing = [n.theirs[0] for n in names if not set(n.theirs) & set(tensors)]
    unexpected = set(tensors) - {name for n in names for name in n.theirs}
    if missing or unexpected:
        raise AdapterError(
            f"{source} does not match its configuration. Missing: "
            f"{some(missing)}. Unexpected: {some(sorted(unexpected))}."
            f"{hint and ' ' + hint}"
        )
    return {name.ours: _read(name, tensors, source) for name in names}


def _read(
    name: TensorName, tensors: dict[str, np.ndarray], source: Path
) -> np.ndarray:
    copies = [tensors[theirs] for theirs in name.theirs if theirs in tensors]
    for copy in copies[1:]:
        if not np.array_equal(copies[0], copy, equal_nan=True):
            raise AdapterError(
                f"{source}: the copies of `{cut(name.theirs[0])}` differ."
            )
    tensor = name.to_ours(np.asarray(copies[0]))
    if tensor is None:
        raise AdapterError(
            f"{source}: `{cut(name.theirs[0])}` has shape {copies[0].shape}, "
            "which does not suit this weight."
        )
    return np.ascontiguousarray(tensor, "float32")


def check_stored(
    names: list[TensorName], tensors: dict[str, np.ndarray], library: str
) -> None:
    """Raises an `AdapterError` if a tensor has no name in another library.

    Args:
        names: List with a `TensorName` for each tensor that has one.
        tensors: Dict from our names to arrays.
        library: Name of the other library, for the error.
    """
    left = sorted(set(tensors) - {name.ours for name in names})
    if left:
        raise AdapterError(
            f"{library}'s format cannot store {len(left)} trained tensors, "
            f"`{left[0]}` for example. Save the adapter in the format of "
            "tf_adapters: without --format."
        )


def to_theirs(
    names: list[TensorName], tensors: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Converts our tensors to a dict from another library's names to arrays.

    Args:
        names: List with a `TensorName` for each tensor to convert.
        tensors: Dict from our names to arrays. Tensors that are not in `names`
            are ignored.
    """
    return {
        theirs: np.ascontiguousarray(name.to_theirs(tensors[name.ours]))
        for name in names
        for theirs in name.theirs
    }
