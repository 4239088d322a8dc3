"""Runs layers that compute the same function by one graph.

TensorFlow writes the graph of a training step in Python, one operation after
the other, which takes seconds. Most of these operations belong to the blocks of
an encoder, and the blocks compute the same function of different weights. Here,
the graph of the first block is written with the weights as arguments. The other
blocks call it with their own.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
import contextlib
import contextvars
import dataclasses
from typing import Any

import keras
from keras import ops

from tf_adapters.common.types import Tensor
from tf_adapters.layers.context import Context
from tf_adapters.layers.descriptions import described
from tf_adapters.layers.reparameterization import InnerScope
from tf_adapters.layers.stateless_seeds import StatelessSeeds


class SharedGraphs:
    """The graphs of layers, which other layers of the same function also use.

    Args:
        traced: Function that returns a fast form of a function of tensors, such
            as `tf.function`. The fast form takes variables as well, and reads
            them before it calls the function.
        differentiable: The variables that need a gradient. All others are
            constants.
    """

    def __init__(
        self,
        traced: Callable[[Callable[..., Any]], Callable[..., Any]],
        differentiable: Iterable[keras.Variable],
    ) -> None:
        self._traced = traced
        self._differentiable = {id(variable) for variable in differentiable}
        # Pairs of a description and the graph of the layers that have it.
        self._graphs: list[tuple[Any, _Graph]] = []

    def __len__(self) -> int:
        return len(self._graphs)

    def run(
        self, layer: Any, x: Tensor, context: Context, **options: Any
    ) -> Tensor:
        """Returns the first output of `layer(x, context=context, **options)`.

        Args:
            layer: Layer with a method `computation`. It returns everything that
                determines the layer's function, apart from the values of its
                weights.
            x: Tensor.
            context: `Context` with `padding_mask`, `adapter_rows` and `seeds`.
            **options: Further arguments of the layer, not tensors.
        """
        weights = layer.weights
        graph = self._graph_of(layer, weights, options)
        # Another shape is traced with this layer: the one before may have
        # changed, for example if its adapter is left out now.
        graph.layer = layer
        seeds = context.seeds
        tensors = {"x": x, "padding_mask": context.padding_mask}
        if context.adapter_rows is not None:
            tensors["adapter_rows"] = context.adapter_rows
        if seeds is not None:
            tensors |= {"seed": seeds.seed, "start": seeds.position()}
        outputs = graph.function(tensors, [one.value for one in weights])
        if seeds is not None and not seeds.advance(graph.draws):
            # The seeds of the layer are not consecutive.
            return layer(x, context=context, **options)[0]
        return outputs

    def _graph_of(
        self,
        layer: Any,
        weights: list[keras.Variable],
        options: dict[str, Any],
    ) -> "_Graph":
        """Returns a graph that computes the function of a layer."""
        numbers = {id(weight): i for i, weight in enumerate(weights)}
        found = described(
            [
                *[weights, layer.computation(), options],
                [id(weight) in self._differentiable for weight in weights],
            ],
            numbers,
        )
        for description, graph in self._graphs:
            if description == found:
                return graph
        graph = _Graph(options, self._differentiable)
        graph.function = self._traced(graph.compute)
        self._graphs.append((found, graph))
        return graph


@dataclasses.dataclass
class _Graph:
    """The function of a layer with the weights as arguments.

    Attributes:
        options: Dict of the layer's arguments that are not tensors.
        differentiable: Ids of the variables that need a gradient.
        layer: The layer that was run last.
        function: The fast form of `compute`.
        draws: Number of seeds that the layer draws, known after the first call.
    """

    options: dict[str, Any]
    differentiable: set[int]
    layer: Any = None
    function: Any = None
    draws: int = 0

    def compute(
        self, tensors: dict[str, Tensor], values: list[Tensor]
    ) -> Tensor:
        """Returns the first output of the layer with other weights.

        Args:
            tensors: Dict with the layer's input `x`, fields of a `Context`,
                and, in training, the arguments of `StatelessSeeds`.
            values: Values of the layer's weights.
        """
        seeds = None
        if "seed" in tensors:
            seeds = StatelessSeeds(tensors["seed"], tensors["start"])
        context = Context(
            tensors["padding_mask"], tensors.get("adapter_rows"), seeds
        )
        pairs = [
            (
                variable,
                value
                if id(variable) in self.differentiable
                else ops.stop_gradient(value),
            )
            for variable, value in zip(self.layer.weights, values, strict=True)
        ]
        with InnerScope(pairs):
            outputs, _ = self.layer(
                tensors["x"], context=context, **self.options
            )
        self.draws = 0 if seeds is None else seeds.draws
        return outputs


_IN_USE: contextvars.ContextVar[SharedGraphs | None] = contextvars.ContextVar(
    "shared_graphs", default=None
)


@contextlib.contextmanager
def sharing(graphs: SharedGraphs | None) -> Iterator[None]:
    """Context manager in which encoders run their blocks by shared graphs.

    Args:
        graphs: `SharedGraphs`, or `None` to run each block by itself.
    """
    token = _IN_USE.set(graphs)
    try:
        yield
    finally:
        _IN_USE.reset(token)


def in_use() -> SharedGraphs | None:
    """Returns the `SharedGraphs` of the context, or `None` outside of it."""
    return _IN_USE.get()
