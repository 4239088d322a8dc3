"""Rewrites an ONNX graph so that ONNX Runtime runs it fast.

The converter translates TensorFlow's operations one by one. For layer norms,
GELU and matrix multiplications of token vectors, the result is slow, because
ONNX Runtime recognizes these operations only in a different form:

- A layer norm becomes one `LayerNormalization`. An `Add` whose output goes into
  the norm is replaced by a `Sum`, because ONNX Runtime 1.31 would combine an
  `Add` and the norm in one operation that is 15 times slower than the two.
- GELU becomes `0.5 (x (1 + erf(x / sqrt(2))))`, in this order.
- Token vectors are multiplied by a matrix without a reshape to two dimensions.

Operations that the converter wrote in a form not expected here are left as they
are.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING
from typing import Any

import numpy as np

if TYPE_CHECKING:
    import onnx

_MEANS = ("GlobalAveragePool", "ReduceMean")


def fuse(content: onnx.ModelProto) -> None:
    """Rewrites a model's graph in place, without changing its outputs."""
    graph = _Graph(content.graph)
    for node in list(content.graph.node):
        if node.op_type == "Reciprocal":
            _fuse_norm(graph, node)
        elif node.op_type == "Erf":
            _order_gelu(graph, node)
        elif node.op_type == "MatMul":
            _keep_dimensions(graph, node)
    graph.remove_unused()


class _Graph:
    """Finds nodes and constants of an ONNX graph by the names of tensors."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        from onnx import numpy_helper

        self._graph = graph
        self.constants = {
            value.name: numpy_helper.to_array(value)
            for value in graph.initializer
        }
        self._makers = {n: node for node in graph.node for n in node.output}

    def maker(self, name: str, *kinds: str) -> onnx.NodeProto | None:
        """Returns the node that makes a tensor, if its type is in `kinds`."""
        node = self._makers.get(name)
        return node if node is not None and node.op_type in kinds else None

    def only_user(self, name: str, *kinds: str) -> onnx.NodeProto | None:
        """Returns the only node that reads a tensor, if it is of `kinds`."""
        users = [node for node in self._graph.node if name in _read_by(node)]
        if len(users) != 1 or any(o.name == name for o in self._graph.output):
            return None
        return users[0] if users[0].op_type in kinds else None

    def shape(self, name: str) -> tuple[int, ...]:
        """Returns the shape of a constant, or `()` for other tensors."""
        array = self.constants.get(name)
        return () if array is None else array.shape

    def is_number(self, name: str, value: float) -> bool:
        """Returns whether `name` is a constant that is close to `value`."""
        array = self.constants.get(name)
        return array is not None and np.allclose(array, value, atol=1e-7)

    def add_number(self, name: str, value: float) -> str:
        """Adds a float constant unless it exists, and returns its name."""
        from onnx import numpy_helper

        if name not in self.constants:
            self.constants[name] = np.array(value, "float32")
            tensor = numpy_helper.from_array(np.array(value, "float32"), name)
            self._graph.initializer.append(tensor)
        return name

    def remove_unused(self) -> None:
        """Removes nodes and constants on which no output depends."""
        used = {output.name for output in self._graph.output}
        nodes, constants = self._graph.node, self._graph.initializer
        for place in reversed(range(len(nodes))):
            if used.isdisjoint(nodes[place].output):
                del nodes[place]
            else:
                used |= _read_by(nodes[place])
        for place in reversed(range(len(constants))):
            if constants[place].name not in used:
                del constants[place]


def _read_by(node: onnx.NodeProto) -> set[str]:
    """Returns the names of the tensors that a node and its subgraphs read."""
    names = set(node.input)
    for attribute in node.attribute:
        names.update(output.name for output in attribute.g.output)
        names.update(*map(_read_by, attribute.g.node))
    return names


def _fuse_norm(graph: _Graph, reciprocal: onnx.NodeProto) -> None:
    """Fuses the layer norm that the node `reciprocal` is part of."""
    found = _centered(graph, reciprocal)
    if found is None:
        return
    x, centered, epsilon = found
    value, factors = reciprocal.output[0], []
    for _ in range(2):
        node = graph.only_user(value, "Mul")
        if node is None:
            return
        factors.append(_other(node, value))
        value = node.output[0]
    if centered not in factors:
        return
    factors.remove(centered)
    inputs = [x, *factors]
    offset = graph.only_user(value, "Add")
    if offset is not None and _other(offset, value) in graph.constants:
        node, inputs = offset, [*inputs, _other(offset, value)]
    if all(len(graph.shape(name)) == 1 for name in inputs[1:]):
        _become_norm(node, inputs, epsilon)
        before = graph.maker(x, "Add")
        if before is not None and not any(map(graph.shape, before.input)):
            before.op_type = "Sum"


def _centered(
    graph: _Graph, reciprocal: onnx.NodeProto
) -> tuple[str, str, float] | None:
    """Returns a norm's input, its centered input (as names), and epsilon.

    Returns `None` if `reciprocal` does not belong to a layer norm.
    """
    root = graph.maker(reciprocal.input[0], "Sqrt")
    total = root and graph.maker(root.input[0], "Add")
    if not total or total.input[1] not in graph.constants:
        return None
    mean = graph.maker(total.input[0], *_MEANS)
    square = mean and graph.maker(mean.input[0], "Mul")
    if not square or square.input[0] != square.input[1]:
        return None
    centered = graph.maker(square.input[0], "Sub")
    if centered is None:
        return None
    average = graph.maker(centered.input[1], *_MEANS)
    if average is None or average.input[0] != centered.input[0]:
        return None
    epsilon = float(graph.constants[total.input[1]])
    return centered.input[0], centered.output[0], epsilon


def _become_norm(
    node: onnx.NodeProto, inputs: list[str], epsilon: float
) -> None:
    from onnx import helper

    node.op_type = "LayerNormalization"
    node.input[:] = inputs
    del node.attribute[:]
    values = {"axis": -1, "epsilon": epsilon}
    node.attribute.extend(
        helper.make_attribute(name, value) for name, value in values.items()
    )


def _order_gelu(graph: _Graph, erf: onnx.NodeProto) -> None:
    """Rewrites the GELU `(1 + erf(x sqrt(0.5))) 0.5 x` for ONNX Runtime."""
    scaled = graph.maker(erf.input[0], "Mul")
    total: Any = graph.only_user(erf.output[0], "Add")
    half: Any = total and graph.only_user(total.output[0], "Mul")
    last: Any = half and graph.only_user(half.output[0], "Mul")
    if scaled is None or not last:
        return
    x, factor = scaled.input
    fits = (
        graph.is_number(factor, math.sqrt(0.5))
        and graph.is_number(_other(total, erf.output[0]), 1.0)
        and graph.is_number(_other(half, total.output[0]), 0.5)
        and _other(last, half.output[0]) == x
    )
    if fits:
        number = _other(half, total.output[0])
        scaled.op_type = "Div"
        scaled.input[1] = graph.add_number("sqrt_of_2", math.sqrt(2.0))
        half.input[:] = [x, total.output[0]]
        last.input[:] = [half.output[0], number]


def _keep_dimensions(graph: _Graph, product: onnx.NodeProto) -> None:
    """Bypasses the reshapes before and after a matrix multiplication.

    The input that is multiplied then has the shape `(batch, tokens, d)`.
    """
    flat = graph.maker(product.input[0], "Reshape")
    back = graph.only_user(product.output[0], "Reshape")
    kernel = graph.constants.get(product.input[1])
    if flat is None or back is None or kernel is None or kernel.ndim != 2:
        return
    shape = graph.constants.get(flat.input[1])
    is_flat = shape is not None and shape.tolist() == [-1, kernel.shape[0]]
    sizes = _as_before(graph, back.input[1], kernel.shape[1])
    if is_flat and sizes == flat.input[0]:
        back.op_type = "MatMul"
        back.input[:] = [flat.input[0], product.input[1]]


def _as_before(graph: _Graph, shape: str, width: int) -> str | None:
    """Returns the tensor from which a shape takes its first two sizes.

    Args:
        graph: Graph that computes the shape.
        shape: Name of the tensor that holds the shape: three sizes.
        width: Expected last size. If another is found, `None` is returned.
    """
    joined = graph.maker(_uncast(graph, shape), "Concat")
    if joined is None or len(joined.input) != 2:
        return None
    first, last = (_uncast(graph, name) for name in joined.input)
    taken = graph.maker(first, "Gather")
    if taken is None or not graph.is_number(last, width):
        return None
    indices = graph.constants.get(taken.input[1])
    if indices is None or indices.tolist() != [0, 1]:
        return None
    whole = graph.maker(_uncast(graph, taken.input[0]), "Shape")
    return None if whole is None else whole.input[0]


def _uncast(graph: _Graph, name: str) -> str:
    node = graph.maker(name, "Cast")
    return name if node is None else node.input[0]


def _other(node: onnx.NodeProto, name: str) -> str:
    """Returns the input of a node with two inputs that is not `name`."""
    return node.input[1] if node.input[0] == name else node.input[0]
