"""Checks the arguments and the weights of an `AdapterModel`."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common.checks import is_integer
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown
from tf_adapters.encoders.encoder import Encoder
from tf_adapters.layers.quantized import is_quantized
from tf_adapters.layers.slot import Slot
from tf_adapters.layers.stateless_seeds import MAX_SEED
from tf_adapters.models import variable_groups

if TYPE_CHECKING:
    import keras

    from tf_adapters.models.assembled_model import AssembledModel


def check_arguments(encoder: object, method: object, head: object) -> None:
    """Raises a `UserError` if an argument has a wrong type.

    Also raises one if the head needs a pooler or vocabulary that the encoder
    does not have.
    """
    encoder = checked_encoder(encoder)
    if not isinstance(method, methods.Method):
        names = ", ".join(cls.__name__ for cls in methods.METHODS.values())
        raise UserError(
            "Expected as `method` one of `tf_adapters.methods`, for example "
            "`tf_adapters.methods.Houlsby(units=64)`. Received: "
            f"{shown(method)}. The methods are {names}."
        )
    if not isinstance(head, (type(None), heads.Head)):
        names = ", ".join(cls.__name__ for cls in heads.HEADS.values())
        raise UserError(
            "Expected as `head` one of `tf_adapters.heads`, for example "
            '`tf_adapters.heads.Classification(labels=("no", "yes"))`, or '
            f"None. Received: {shown(head)}. The heads are {names}."
        )
    _check_pooler(encoder, head)
    _check_vocabulary(encoder, head)


def checked_encoder(encoder: object) -> Encoder:
    """Returns `encoder`; raises a `UserError` if it is not an `Encoder`."""
    if isinstance(encoder, tuple | list):
        raise UserError(
            "`load_encoder` returns an encoder and its tokenizer. Give the "
            "encoder alone: `encoder, tokenizer = load_encoder(...)`."
        )
    if not isinstance(encoder, Encoder):
        raise UserError(
            "Expected as `encoder` what `tf_adapters.load_encoder` returns "
            f"first. Received: {shown(encoder)}"
        )
    return encoder


def check_seed(seed: Any) -> None:
    """Raises a `UserError` unless a seed is valid.

    Larger seeds could draw the same numbers as smaller ones.

    Args:
        seed: Must be an integer from 0 to `MAX_SEED`, or `None` for a seed that
            Keras draws.
    """
    if seed is not None and not (is_integer(seed) and 0 <= seed <= MAX_SEED):
        raise UserError(
            f"`seed` must be an integer from 0 to {MAX_SEED:,}. Received: "
            f"{seed!r:.100}"
        )


def check_slots_train(model: AssembledModel) -> None:
    """Raises a `UserError` if a slot has a variable that does not train.

    Adapter folders store only weights that train. The slots of a fusion also
    hold its members, which the folder names instead.

    Args:
        model: `AdapterModel`.
    """
    if model.method.adapters:
        return
    for slot in model.own_slots():
        for variable in slot.variables:
            if not variable.trainable:
                raise UserError(
                    f"The variable `{variable.path}` of a slot does not train, "
                    "so an adapter folder would not have it. Compute a "
                    "constant in `call`, and draw dropout masks from "
                    "`context.seeds`, without a Keras layer such as Dropout."
                )


def check_trained_dtypes(model: AssembledModel) -> None:
    """Raises a `UserError` if a trained weight is not float32.

    Args:
        model: `AdapterModel`.
    """
    trained = [
        *variable_groups.trained_additions(model),
        *model.declared_encoder_variables(),
    ]
    for variable in trained:
        _check_float32(variable)


def _check_float32(variable: keras.Variable) -> None:
    if variable.dtype != "float32":
        raise UserError(
            f"The weight `{variable.path}` is {variable.dtype}, but trained "
            "weights must be float32, or small steps are lost. Load the "
            'encoder with dtype="mixed_bfloat16", which computes in bfloat16 '
            "with float32 weights, and give layers of your own "
            'dtype="float32".'
        )


def check_trained_floats(model: AssembledModel) -> None:
    """Raises a `UserError` if a quantized weight of the encoder would train.

    Args:
        model: `AdapterModel`.
    """
    for variable in model.declared_encoder_variables():
        _check_float(model, variable)


def of_floats(
    model: AssembledModel,
    pairs: list[tuple[keras.Variable, keras.layers.Layer]],
) -> list[tuple[keras.Variable, keras.layers.Layer]]:
    """Returns `pairs`, or raises a `UserError` if a variable is not float32.

    Args:
        model: `AdapterModel`.
        pairs: Return value of `Method.reparameterize`.
    """
    for variable, _ in pairs:
        _check_float(model, variable)
        _check_float32(variable)
    return pairs


def _check_float(model: AssembledModel, variable: keras.Variable) -> None:
    if is_quantized(variable):
        raise UserError(
            f"The method {methods.name_of(model.method)} changes "
            f"`{variable.path}`, which is quantized to "
            f"{model.encoder_info.quantization} and cannot train. Use a method "
            "that leaves kernels and embeddings alone, such as pfeiffer or "
            "lora, or load the encoder without `quantize`."
        )


def check_trains(model: AssembledModel) -> None:
    """Raises a `UserError` if a model has no weights that train.

    Args:
        model: `AdapterModel`.
    """
    if model.trainable_variables:
        return
    if any(trains for _, trains, _ in model.variable_groups()):
        raise UserError(
            "There is nothing to train: all weights of the model are frozen. "
            "Set `model.trainable = True`, and `trainable` of its layers."
        )
    raise UserError(
        f"There is nothing to train: the method {shown(model.method)} and "
        f"the head {shown(model.head)} have no weights that train. Choose "
        'a method that adds some, such as `"pfeiffer"`.'
    )


def _check_pooler(encoder: Encoder, head: heads.Head | None) -> None:
    reads = None if head is None else head.reads
    if reads == "pooled_output" and not encoder.has_pooler:
        raise UserError(
            f"The head reads `pooled_output`, but encoder `{encoder.name}` has "
            "no pooler. Use reads='first_token'."
        )


def _check_vocabulary(encoder: Encoder, head: heads.Head | None) -> None:
    if not isinstance(head, heads.MaskedLM):
        return
    layer = encoder.backbone.token_embedding
    expected = layer.input_dim, layer.output_dim
    received = head.vocabulary_size, head.embedding_width
    if received != expected:
        raise UserError(
            f"Encoder `{cut(encoder.name)}` has {expected[0]:,} tokens with "
            f"embeddings of width {expected[1]}. Received: "
            f"vocabulary_size={received[0]}, embedding_width={received[1]}"
        )


def foldable(
    pairs: list[tuple[keras.Variable, Slot]],
) -> list[tuple[keras.Variable, Slot]]:
    """Returns the pairs (kernel, slot) that can be folded.

    In such a pair, the kernel is float32 and is in no other pair.

    Args:
        pairs: Return value of `Method.folds`.
    """
    kernels = [id(kernel) for kernel, _ in pairs]
    return [
        pair
        for pair in pairs
        if kernels.count(id(pair[0])) == 1 and pair[0].dtype == "float32"
    ]


def check_foldable(
    model: AssembledModel, pairs: list[tuple[keras.Variable, Slot]]
) -> None:
    """Raises a `UserError` if a slot cannot be folded into its kernel.

    This is the case if the kernel is quantized or half-precision, or if several
    slots change it.

    Args:
        model: `AdapterModel`.
        pairs: Return value of `Method.folds`.
    """
    if pairs and model.encoder_info.quantization:
        raise UserError(
            "The encoder is quantized to "
            f"{model.encoder_info.quantization}, and its kernels cannot hold "
            "the small changes of the adapter. Use the model without `fold()`."
        )
    for kernel, _ in pairs:
        if kernel.dtype != "float32":
            raise UserError(
                f"The kernel `{kernel.path}` is {kernel.dtype}, which rounds "
                "away the small changes of the adapter. Use the model without "
                '`fold()`, or load the encoder with dtype="mixed_bfloat16".'
            )
    if len(foldable(pairs)) < len(pairs):
        raise UserError(
            "The encoder's blocks share their kernels, as ALBERT's do, but "
            "each block has a product of its own, and one kernel cannot hold "
            "them all. Use the model without `fold()`."
        )
