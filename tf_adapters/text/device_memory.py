"""Says what to change if a device has too little memory for a text model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tf_adapters.training import device_errors

if TYPE_CHECKING:
    import contextlib

    from tf_adapters.models.adapter_model import AdapterModel


def explained(
    model: AdapterModel, batch_size: int | None
) -> contextlib.AbstractContextManager[None]:
    """Returns a context manager that explains errors about too little memory.

    It replaces the backend's error with a `ConfigError` that says which
    arguments to change.

    Args:
        model: The `AdapterModel` that trains or predicts.
        batch_size: Number of texts per batch.
    """
    return _explained(
        model,
        f"Lower `batch_size` (now {batch_size}; a batched `tf.data.Dataset` "
        "has batches of its own)",
    )


def in_explanations(
    model: AdapterModel,
) -> contextlib.AbstractContextManager[None]:
    """Returns the same for `explain`, which has no argument `batch_size`.

    Args:
        model: The `AdapterModel` whose answers are explained.
    """
    return _explained(model, "Explain shorter texts")


def _explained(
    model: AdapterModel, advice: str
) -> contextlib.AbstractContextManager[None]:
    policy = model.encoder_info.backbone.dtype_policy
    if policy.compute_dtype == "float32":
        advice += (
            ', or load the encoder with dtype="mixed_bfloat16" (now '
            f'"{policy.name}")'
        )
    advice += "."
    return device_errors.explained(advice, deterministic=None, compiles=False)
