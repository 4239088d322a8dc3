"""The outputs and the metadata of an exported file that takes token ids.

Both are the same in all file formats. The output of the head layer is named
`logits`, or `outputs` if it does not hold logits. If the model classifies or
scores texts, `probabilities` or `score` is a second output.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from keras import ops
import tensorflow as tf

from tf_adapters import heads
from tf_adapters.common.errors import UserError
from tf_adapters.data.tokens import words
from tf_adapters.export import encoder_folder
from tf_adapters.export import request_checks
from tf_adapters.models.adapter_model import AdapterModel

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Sequence

    from tf_adapters.common.types import Tensor
    from tf_adapters.data.tokens.packer import Packer
    from tf_adapters.encoders.encoder import Encoder
    from tf_adapters.models.encoder_model import EncoderModel

# Features with a value for each token.
_OF_TOKENS = ("token_ids", "padding_mask", "segment_ids")


def check_model(model: object, packer: Packer, function: str) -> None:
    """Raises a `UserError` if a model with a packer cannot be exported.

    See also `check_encoder`.

    Args:
        model: Value that should be an `AdapterModel` with a head.
        packer: `TextPacker`, whose inputs must not be too long for the model.
        function: Name of the public function that received the value.
    """
    if not isinstance(model, AdapterModel) or model.head is None:
        raise UserError(
            f"Expected as `model` of `{function}(model, packer, folder)` an "
            "`AdapterModel` with a head, as `adapt(encoder, method, head)` "
            f"returns. Received: {model!r:.100}"
        )
    check_encoder(model, function)
    request_checks.check_packer(packer, model.encoder)


def check_encoder(model: EncoderModel, function: str) -> None:
    """Raises a `UserError` if an encoder is not as the model's file needs it.

    This is so if another model has changed the encoder, or it computes in half
    precision, which rounds more than the comparison of file and model allows.

    Args:
        model: `EncoderModel`.
        function: Name of the public function that exports it.
    """
    model.check_encoder()
    dtype = model.encoder_info.backbone.dtype_policy.compute_dtype
    if dtype != "float32":
        raise UserError(
            f"`{function}` needs a model that computes in float32, and this "
            f"one computes in {dtype}. Save its adapter, load that with an "
            'encoder in float32, and export it. With dtype="mixed_bfloat16", '
            "the adapter fits both."
        )


def compute(
    model: AdapterModel, features: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Computes the outputs that the exported file should have, by name.

    The outputs are float32 tensors.
    """
    outputs = ops.cast(model(features, training=False), "float32")
    name = "logits" if model.head.gives_logits else "outputs"
    answer = model.head.answer(outputs) if _is_of_texts(model.head) else {}
    # Class ids are left to the caller: Keras's argmax uses operations that
    # ONNX lacks.
    numbers = {k: v for k, v in answer.items() if v.dtype.is_floating}
    return {name: outputs, **numbers}


def graph(
    model: AdapterModel, shapes: Mapping[str, tuple[int | None, ...]]
) -> tf.types.experimental.PolymorphicFunction:
    """Returns a `tf.function` that computes a model's outputs; see `compute`.

    Args:
        model: `AdapterModel` with a head.
        shapes: Dict from feature name to shape, as `model.feature_shapes()`.
            `None` stands for any size.
    """

    def from_tokens(*features: Tensor) -> dict[str, Tensor]:
        named = dict(zip(shapes, features, strict=True))
        return compute(model, of_equal_shape(named))

    inputs = [
        tf.TensorSpec(shape, tf.int32, name) for name, shape in shapes.items()
    ]
    return tf.function(from_tokens, autograph=False, input_signature=inputs)


def of_equal_shape(features: dict[str, Tensor]) -> dict[str, Tensor]:
    """Returns features unchanged, or fails in the graph if shapes do not fit.

    Other formats than SavedModel would broadcast a feature of one row to the
    rows of the others, and answer. All features of tokens need one shape, and
    `adapter_ids` and `masked_positions` a value or a list for each row.

    Args:
        features: Dict from name to int32 tensor.
    """
    names = [name for name in _OF_TOKENS if name in features]
    tokens = _stacked([features[name] for name in names])
    checked = {**features, **dict(zip(names, tokens, strict=True))}
    if "adapter_ids" in features:
        rows = [features["adapter_ids"], features["token_ids"][:, 0]]
        checked["adapter_ids"] = _stacked(rows)[0]
    if "masked_positions" in features:
        checked["masked_positions"] = _with_rows_of(
            features["token_ids"], features["masked_positions"]
        )
    return checked


def _with_rows_of(token_ids: Tensor, positions: Tensor) -> Tensor:
    """Returns `positions`, or fails in the graph if it has other rows.

    A column of `token_ids` is put in front, and removed. See `_stacked` for
    why both are padded.
    """
    column = ops.pad(token_ids, [(0, 1), (0, 1)])[:, :1]
    padded = ops.pad(positions, [(0, 1), (0, 0)])
    return ops.concatenate([column, padded], axis=1)[:-1, 1:]


def _stacked(tensors: list[Tensor]) -> list[Tensor]:
    """Stacks tensors, which fails if their shapes differ, and unstacks them.

    ONNX Runtime leaves empty tensors out of a stack, and reads memory without
    content in their place. So no tensor is empty when it is stacked.
    """
    rank = len(tensors[0].shape)
    padded = [ops.pad(tensor, [(0, 1)] * rank) for tensor in tensors]
    inside = (slice(None, -1),) * rank
    return [tensor[inside] for tensor in ops.unstack(ops.stack(padded))]


def facts(
    model: AdapterModel, packer: Packer, text_fields: Sequence[str] = ()
) -> dict[str, str]:
    """Returns the metadata of an exported file as a dict of strings.

    Args:
        model: `AdapterModel` with a head.
        packer: `TextPacker`.
        text_fields: Names of a row's texts. Empty if they are not known.
    """
    head = model.head
    return {
        "head": json.dumps(heads.to_config(head)),
        "labels": json.dumps(list(head.labels)),
        "text_fields": json.dumps(list(text_fields)),
        "temperature": json.dumps(head.temperature),
        **({} if head.signature != "words" else _word_facts(packer)),
        **input_facts(model.encoder_info, packer),
    }


def input_facts(encoder: Encoder, packer: Packer) -> dict[str, str]:
    """Returns the metadata about the encoder and the length of its inputs."""
    folder = encoder_folder.folder_of(encoder)
    return {
        "max_length": str(packer.max_length),
        "encoder": encoder.name,
        "encoder_fingerprint": encoder.fingerprint,
        "encoder_license": encoder_folder.license_of(folder),
    }


def _word_facts(packer: Packer) -> dict[str, str]:
    """Returns the metadata that a client needs to tokenize single words."""
    return {
        "word_prefix": words.word_prefix(packer.tokenizer),
        "unknown_id": str(words.unknown_id(packer.tokenizer)),
    }


def _is_of_texts(head: heads.Head) -> bool:
    """Returns whether a head classifies or scores texts."""
    return head.signature in ("text", "windows")
