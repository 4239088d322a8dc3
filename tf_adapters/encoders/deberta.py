"""DeBERTa-v3 (He et al. 2021, arXiv:2111.09543): positions only in attention.

All blocks share a table with a vector for each relative position. Each block
applies its own query and key projections to the table, multiplies the results
with the keys and queries of the tokens, and adds the products to the attention
scores. The backbone is KerasHub's. Hugging Face folders have `model_type:
deberta-v2`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING
from typing import Any

from keras import ops
import keras_hub
import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.common.types import Tensor
from tf_adapters.encoders.architecture import Architecture
from tf_adapters.encoders.huggingface_family import BERT_ARGUMENTS
from tf_adapters.encoders.huggingface_family import OPTIONS_WITHOUT_SEGMENTS
from tf_adapters.encoders.huggingface_family import Family
from tf_adapters.encoders.huggingface_weights import blocks_of
from tf_adapters.layers.attention import by_head
from tf_adapters.layers.float32_layer import Float32Layer
from tf_adapters.layers.normalization import layer_norm

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tf_adapters.encoders.encoder import Encoder


DebertaV3Backbone = keras_hub.models.DebertaV3Backbone
_LAYER = "disentangled_attention_encoder_layer_{}"


class DisentangledPositions(Float32Layer):
    """Computes the part of DeBERTa's attention scores that uses positions.

    It is the sum of the content-to-position and the position-to-content scores.

    Args:
        backbone: `DebertaV3Backbone`.
        epsilon: Epsilon of the layer norm of the table of relative positions.
        **kwargs: See `keras.layers.Layer`.
    """

    def __init__(
        self, backbone: DebertaV3Backbone, epsilon: float, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.table = backbone.relative_embeddings
        self.epsilon = epsilon
        self._num_heads = backbone.num_heads
        self._span = backbone.bucket_size
        self._buckets = _buckets(
            backbone.bucket_size, backbone.max_sequence_length
        )
        self.built = True

    def relate(
        self,
        query: Tensor,
        key: Tensor,
        project: Callable[[str, Tensor], Tensor],
        drop: Callable[[Tensor], Tensor],
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the scaled query, the key, and the scores that use positions.

        See `tf_adapters.layers.attention.NoPositions`.
        """
        norm = self.table.layer_norm
        table = layer_norm(
            # A tensor: TensorFlow's custom gradients take no variables.
            ops.copy(self.table.rel_embeddings),
            norm.gamma,
            norm.beta,
            self.epsilon,
        )
        table = drop(ops.cast(table, query.dtype))[None]
        tokens = ops.shape(key)[1]
        distances = ops.arange(1 - tokens, tokens)
        # An attention score is the sum of three terms. Each is scaled so that
        # it has a third of the variance.
        head_width = query.shape[-1] // self._num_heads
        scale = ops.cast(1 / math.sqrt(3 * head_width), query.dtype)
        to_position = self._scores(
            query * scale, project("key", table), -distances
        )
        to_content = self._scores(
            key * scale, project("query", table), distances
        )
        to_content = ops.transpose(to_content, (0, 1, 3, 2))
        bias = to_position + to_content[:, :, : ops.shape(query)[1]]
        return query * ops.cast(1 / math.sqrt(3), query.dtype), key, bias

    def _scores(self, x: Tensor, table: Tensor, distances: Tensor) -> Tensor:
        """Scores each token against its relative position to every token.

        Args:
            x: `(batch, rows, width)`. Queries or keys of the first tokens of
                each text.
            table: `(1, 2 buckets, width)`. Projected table of positions.
            distances: `(2 tokens - 1,)` integers. All relative positions that
                occur. Each row uses a range of them, which starts one entry
                earlier than the range of the row before it.

        Returns:
            `(batch, heads, rows, tokens)`.
        """
        far = ops.minimum(ops.abs(distances), len(self._buckets) - 1)
        buckets = ops.take(self._buckets, far, axis=0)
        rows = self._span + ops.sign(distances) * buckets
        rows = ops.clip(rows, 0, 2 * self._span - 1)
        positions = by_head(ops.take(table, rows, axis=1), self._num_heads)
        products = ops.matmul(
            by_head(x, self._num_heads),
            ops.transpose(positions, (0, 1, 3, 2)),
        )
        return _shifted(products)


def _shifted(products: Tensor) -> Tensor:
    """Converts scores by relative position to scores by token.

    Entry `[..., i, j]` of the result is `products[..., i, j - i + tokens - 1]`.

    Args:
        products: `(batch, heads, rows, 2 tokens - 1)`, with at most as many
            rows as tokens.

    Returns:
        `(batch, heads, rows, tokens)`.
    """
    batch, heads, rows, columns = ops.shape(products)
    tokens = (columns + 1) // 2
    # With an additional column, each flattened row starts one position later.
    flat = ops.pad(products, ((0, 0), (0, 0), (0, 0), (0, 1)))
    flat = ops.reshape(flat, (batch, heads, rows * (columns + 1)))
    flat = ops.pad(flat, ((0, 0), (0, 0), (0, tokens)))
    flat = flat[:, :, tokens - 1 : tokens - 1 + rows * columns]
    flat = ops.reshape(flat, (batch, heads, rows, columns))
    return flat[:, :, :, :tokens]


def _buckets(bucket_size: int, max_positions: int) -> np.ndarray:
    """Returns an int32 array with the bucket of each distance, from 0 on.

    Distances up to `bucket_size // 2` have a bucket each. Larger distances are
    grouped by their logarithm, in float32 as in
    transformers/models/deberta_v2/modeling_deberta_v2.py.
    """
    middle = bucket_size // 2
    far = np.arange(max(max_positions, middle + 2))
    steps = np.log(np.maximum(far, middle).astype("float32") / middle)
    steps = steps / np.log(np.float32((max_positions - 1) / middle))
    logarithmic = np.ceil(steps * (middle - 1)) + middle
    return np.where(far <= middle, far, logarithmic).astype("int32")


def _positions(encoder: Encoder) -> list[DisentangledPositions]:
    backbone = encoder.backbone
    shared = DisentangledPositions(
        backbone, encoder.layer_norm_epsilon, name="positions"
    )
    return [shared] * backbone.num_layers


ARCHITECTURE = Architecture("gelu", 1e-7, positions=_positions)


# A model of type `deberta-v2` is computed like DeBERTa-v3 if its `config.json`
# has these values. An entry is a key, its required value, and its default value
# in transformers.
_EXPECTED = (
    ("relative_attention", True, False),
    ("norm_rel_ebd", "layer_norm", "none"),
    ("share_att_key", True, False),
    ("position_biased_input", False, True),
    ("type_vocab_size", 0, 0),
    ("conv_kernel_size", 0, 0),
)


def _check(config: dict[str, Any], path: Path) -> None:
    expected: list[tuple[str, Any, Any]] = list(_EXPECTED)
    for key, same in (
        ("embedding_size", "hidden_size"),
        ("max_relative_positions", "max_position_embeddings"),
    ):
        # -1, like a missing key, means the value of the other key.
        if config.get(key, -1) != -1:
            expected.append((key, config.get(same), None))
    kinds = config.get("pos_att_type") or []
    kinds = kinds.split("|") if isinstance(kinds, str) else kinds
    found = {key: config.get(key, absent) for key, _, absent in expected}
    wrong = [key for key, right, _ in expected if found[key] != right]
    is_list = isinstance(kinds, list)
    if not is_list or sorted(map(str, kinds)) != ["c2p", "p2c"]:
        wrong, found["pos_att_type"] = [*wrong, "pos_att_type"], kinds
        expected.append(("pos_att_type", "p2c|c2p", None))
    if wrong:
        rights = {key: right for key, right, _ in expected}
        raise UserError(
            f"`{path}`: an encoder of model_type deberta-v2 is supported only "
            "if it is computed like DeBERTa-v3. Expected: "
            f"{wrong[0]}={shown(rights[wrong[0]])}. Received: "
            f"{wrong[0]}={shown(found[wrong[0]])}"
        )


_BLOCK = {
    "self_attention_layer/query": "attention.self.query_proj",
    "self_attention_layer/key": "attention.self.key_proj",
    "self_attention_layer/value": "attention.self.value_proj",
    "self_attention_layer/attention_output": "attention.output.dense",
    "self_attention_layer_norm": "attention.output.LayerNorm",
    "feedforward_intermediate_dense": "intermediate.dense",
    "feedforward_output_dense": "output.dense",
    "feedforward_layer_norm": "output.LayerNorm",
}
HUGGINGFACE = Family(
    DebertaV3Backbone,
    {
        "token_embedding": "embeddings.word_embeddings",
        "embeddings_layer_norm": "embeddings.LayerNorm",
        "rel_embedding": "encoder.rel_embeddings",
        "rel_embedding/rel_embeddings_layer_norm": "encoder.LayerNorm",
        **blocks_of(_BLOCK, "encoder.layer.{}", _LAYER),
    },
    "deberta.",
    arguments={**BERT_ARGUMENTS, "bucket_size": "position_buckets"},
    options={
        **OPTIONS_WITHOUT_SEGMENTS,
        "layer_norm_epsilon": ("layer_norm_eps", 1e-7),
    },
    check=_check,
)
