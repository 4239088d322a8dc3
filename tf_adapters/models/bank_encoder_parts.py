"""Converts an adapter's trained norms and biases to a bank's `Part`s.

Some methods train norms or biases of the encoder itself. Each adapter of a bank
can have its own norms and biases, but not its own kernels.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from typing import Any

from keras import ops
import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.layers.banks.bank_layer import Part
from tf_adapters.layers.banks.branches import BankBias
from tf_adapters.layers.banks.norms import BankNorm
from tf_adapters.layers.slot import PROJECTIONS

if TYPE_CHECKING:
    import keras

    from tf_adapters.models.adapted_encoder import AdaptedEncoder


def parts(
    encoder: AdaptedEncoder, values: dict[int, np.ndarray]
) -> list[tuple[str, int, Part]]:
    """Returns a list of `Part`s, one for each norm and bias that was trained.

    Each entry is (place name, index, `Part`); see `bank_parts.Place`.

    Args:
        encoder: `AdaptedEncoder` with its own weights.
        values: Dict from the id of a variable to its trained value.

    Raises:
        UserError: If a variable is not a bias or a weight of a norm.
    """
    found, known = [], set()
    for index, norm in enumerate(encoder.norms()):
        if any(id(v) in values for v in norm.variables):
            found.append(("norm", index, norm_part(norm, values)))
        known |= {id(v) for v in norm.variables}
    for name, index, bias in _biases(encoder):
        if id(bias) in values:
            own = ops.convert_to_numpy(bias)
            change = (values[id(bias)] - own).reshape(-1)
            found.append((name, index, BankBias.part({"bias": change})))
        known.add(id(bias))
    _check_all_known(encoder, values, known)
    return found


def norm_part(
    norm: keras.layers.LayerNormalization, values: dict[int, np.ndarray]
) -> Part:
    """Returns a norm's scale and offset as a `Part` of a bank.

    Args:
        norm: Layer norm.
        values: Dict from the id of a variable to the value that replaces it.
    """
    gamma: Any = norm.gamma
    beta = norm.beta
    arrays = {
        "gamma": values.get(id(gamma), gamma),
        "beta": np.zeros(gamma.shape)
        if beta is None
        else values.get(id(beta), beta),
    }
    return BankNorm.part(arrays)


def _biases(
    encoder: AdaptedEncoder,
) -> Iterator[tuple[str, int, keras.Variable]]:
    """Yields the encoder's biases that can differ between a bank's adapters.

    Each is a tuple (place name, index, bias); see `bank_parts.Place`.
    """
    if encoder.projection is not None:
        yield "embeddings", 0, encoder.projection.bias
    if encoder.pooler is not None:
        yield "pooler", 0, encoder.pooler.bias
    for index, block in enumerate(encoder.blocks):
        for name in PROJECTIONS:
            bias = getattr(block.block_layers, name).bias
            if bias is not None:
                yield name, index, bias


def _check_all_known(
    encoder: AdaptedEncoder, values: dict[int, np.ndarray], known: set[int]
) -> None:
    for variable in encoder.backbone.weights:
        if id(variable) in values and id(variable) not in known:
            raise UserError(
                "It trained weights of the encoder that all adapters of a "
                f"bank share, such as `{variable.path}`."
            )
