"""The linear heads of a bank's adapters, with any number of outputs."""

from collections.abc import Sequence
from typing import Any

from keras import ops

from tf_adapters.common.types import Tensor
from tf_adapters.layers import activations
from tf_adapters.layers.banks.bank_layer import BankLayer
from tf_adapters.layers.banks.bank_layer import Kind
from tf_adapters.layers.float32_layer import Float32Layer

# The value of outputs that an example's head does not have. A softmax maps it
# to 0.
ABSENT = -1e9
TOKENS = "sequence_output"


class BankHeadLayer(BankLayer):
    """Base class of `BankHidden` and `BankLinear`, the two layers of a head.

    Args:
        shapes: See `BankLayer`.
        num_rows: See `BankLayer`.
        column: See `BankLayer`.
        reads: What the head reads: `"first_token"`, `"pooled_output"` or
            `"sequence_output"`.
        **kwargs: See `keras.layers.Layer`.
    """

    def __init__(
        self,
        shapes: dict[str, tuple[int, ...]],
        num_rows: int,
        column: int,
        reads: str,
        **kwargs: Any,
    ) -> None:
        super().__init__(shapes, num_rows, column, **kwargs)
        self.reads = reads


class BankHidden(BankHeadLayer):
    """Applies a head's dense layer to the examples whose head has one.

    The input of all other examples is returned unchanged.

    Args:
        shapes: See `BankLayer`.
        num_rows: See `BankLayer`.
        column: See `BankLayer`.
        reads: See `BankHeadLayer`.
        activation: Name of the dense layer's activation.
        **kwargs: See `keras.layers.Layer`.
    """

    def __init__(
        self,
        shapes: dict[str, tuple[int, ...]],
        num_rows: int,
        column: int,
        reads: str,
        activation: str,
        **kwargs: Any,
    ) -> None:
        super().__init__(shapes, num_rows, column, reads, **kwargs)
        self._activation = activations.get_activation(activation)

    def call(self, x: Tensor, adapter_rows: Tensor) -> Tensor:
        y = self.multiply(x, "kernel", adapter_rows)
        y = y + self.vectors("bias", adapter_rows, x.dtype)
        is_used = self.is_used(adapter_rows)[:, None, None]
        return ops.where(is_used, self._activation(y), x)


class BankLinear(BankHeadLayer):
    """Computes `x W + b`, a head's outputs, padded to the layer's width.

    The padding is `ABSENT`, -1e9, which a softmax maps to 0.
    """

    width_axes = {"kernel": 1, "bias": 0}
    padding = {"bias": ABSENT}

    @property
    def num_outputs(self) -> int:
        """The layer's number of outputs, including padding."""
        return self.shapes["bias"][0]

    def call(self, x: Tensor, adapter_rows: Tensor) -> Tensor:
        y = self.multiply(x, "kernel", adapter_rows)
        return y + self.vectors("bias", adapter_rows, x.dtype)


def count_outputs(kind: Kind, arrays: dict[str, Any]) -> dict[str, int]:
    """Returns the number of outputs of a head, not counting the padding.

    Args:
        kind: `Kind` of the head's weights.
        arrays: Dict from the name of a weight to its array.

    Returns:
        Dict from `"texts"` or `"tokens"` (see `output_of`) to the number. Empty
        if the kind is not that of a `BankLinear`.
    """
    if kind.layer is not BankLinear:
        return {}
    is_own = arrays["bias"] > ABSENT / 2
    return {output_of(dict(kind.settings)["reads"]): int(is_own.sum())}


def output_of(reads: str) -> str:
    """Returns the key of a head's outputs in the dict that `BankHeads` returns.

    The key is `"tokens"` if the head reads all tokens, otherwise `"texts"`.
    """
    return "tokens" if reads == TOKENS else "texts"


class BankHeads(Float32Layer):
    """Applies the head of each example's adapter.

    Args:
        layers: List of `BankHidden` and `BankLinear` layers.
        **kwargs: See `keras.layers.Layer`.

    Call arguments:
        vectors: Dict from the name that a head `reads` to `(batch, tokens,
            width)`, with one token for heads that read one vector of a text.
        adapter_rows: See `Context`.

    Returns:
        Dict with up to two float32 tensors: `texts`, `(batch, 1, outputs)`, if
        any head classifies texts, and `tokens`, `(batch, tokens, outputs)`, if
        any head classifies tokens. Each is as wide as its widest head, and
        `ABSENT` where an example's head has no output.
    """

    def __init__(self, layers: Sequence[BankHeadLayer], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.hidden = [x for x in layers if isinstance(x, BankHidden)]
        self.linear = [x for x in layers if isinstance(x, BankLinear)]
        self.built = True

    @property
    def reads(self) -> set[str]:
        """Names of the encoder's outputs that at least one head reads."""
        return {layer.reads for layer in self.linear}

    def call(
        self, vectors: dict[str, Tensor], adapter_rows: Tensor
    ) -> dict[str, Tensor]:
        vectors = dict(vectors)
        for layer in self.hidden:
            vectors[layer.reads] = layer(vectors[layer.reads], adapter_rows)
        return {
            name: self._outputs(vectors, adapter_rows, layers)
            for name, layers in self._by_outputs().items()
        }

    def _by_outputs(self) -> dict[str, list[BankLinear]]:
        found = {}
        for layer in self.linear:
            found.setdefault(output_of(layer.reads), []).append(layer)
        return found

    def _outputs(
        self,
        vectors: dict[str, Tensor],
        adapter_rows: Tensor,
        layers: list[BankLinear],
    ) -> Tensor:
        width = max(layer.num_outputs for layer in layers)
        total = ABSENT
        for layer in layers:
            y = layer(vectors[layer.reads], adapter_rows)
            missing = width - layer.num_outputs
            y = ops.pad(
                y, ((0, 0), (0, 0), (0, missing)), constant_values=ABSENT
            )
            total = ops.where(
                layer.is_used(adapter_rows)[:, None, None], y, total
            )
        return total
