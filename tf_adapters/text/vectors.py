"""A Keras model that turns texts into vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import keras
import numpy as np

from tf_adapters.common.checks import check_known
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.common.types import Tensor
from tf_adapters.heads.windows import pool_windows
from tf_adapters.layers.token_pooling import TOKEN_POOLINGS
from tf_adapters.layers.token_pooling import TokenPooling
from tf_adapters.layers.token_pooling import pool_tokens
from tf_adapters.models.encoder_model import as_sequences

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tf_adapters.data.examples import Examples
    from tf_adapters.layers.reparameterization import Reparameterization
    from tf_adapters.models.adapted_encoder import AdaptedEncoder
    from tf_adapters.models.adapter_model import AdapterModel


def vectors_of(
    model: AdapterModel, pooling: TokenPooling | None = None
) -> keras.Model:
    """Returns the Keras model that computes vectors from token features.

    Args:
        model: `AdapterModel`.
        pooling: One of `TOKEN_POOLINGS`. `None` (default) means the head's own
            vectors if it makes any, otherwise `"mean"`.

    Raises:
        UserError: If the pooling is unknown, or is set for a head that makes
            vectors.
    """
    if not model.head.makes_vectors:
        return TextVectors(model, pooling or "mean")
    if pooling is not None:
        raise UserError(
            "The head makes the vectors, so `pooling` has no effect: leave it "
            f"out. Received: pooling={shown(pooling)} with {model.head}"
        )
    return model


def are_single(parts: Iterable[Examples], num_rows: int) -> bool:
    """Returns whether each row is encoded as exactly one example.

    Args:
        parts: The `Examples` of all rows, in one or several parts.
        num_rows: Number of rows.
    """
    parts = [*parts]
    read = [
        window.row
        for part in parts
        for window in getattr(part.source, "windows", ())
    ]
    return sum(map(len, parts)) == num_rows and len({*read}) == len(read)


def of_single_texts(vectors: np.ndarray) -> np.ndarray:
    """Drops the axis `texts` from an array if each row has one text.

    Args:
        vectors: `(rows, texts, width)` from a head that makes vectors, or
            `(rows, width)`.
    """
    return vectors[:, 0] if vectors.shape[1:-1] == (1,) else vectors


class TextVectors(keras.Model):
    """Computes the pooled token vectors of an adapted encoder, one per text.

    Args:
        model: `AdapterModel`.
        pooling: One of `TOKEN_POOLINGS`.

    Call arguments:
        inputs: Dict as for `AdapterModel`, `(batch, tokens)` or `(batch,
            windows, tokens)`. With windows, a text's vector is the mean of its
            windows' vectors.

    Returns:
        Float32 tensor `(batch, width)`.
    """

    def __init__(
        self, model: AdapterModel, pooling: TokenPooling = "mean"
    ) -> None:
        super().__init__(autocast=False, trainable=False)
        check_known("pooling", pooling, TOKEN_POOLINGS)
        self.model = model
        self.pooling = pooling
        if keras.backend.backend() == "tensorflow":
            # XLA would compile a program for each length of a batch.
            self.jit_compile = False
        self.built = True

    @property
    def encoder(self) -> AdaptedEncoder:
        """The adapted encoder of `model`."""
        return self.model.encoder

    @property
    def reparameterization(self) -> Reparameterization:
        """The values that `model` computes for weights of its encoder."""
        return self.model.reparameterization

    @property
    def head(self) -> None:
        """`None`, because the head of `model` is not used."""
        return None

    def call(
        self, inputs: dict[str, Tensor], training: bool | None = None
    ) -> Tensor:
        mask = inputs["padding_mask"]
        vectors = pool_tokens(
            self.model.encode(inputs),
            as_sequences(inputs)["padding_mask"],
            self.pooling,
        )
        if len(mask.shape) < 3:
            return vectors
        return pool_windows(vectors, mask, "mean")
