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
    policy = model.encoder_info.backbone.dtype_policy
    advice = (
        f"Lower `batch_size` (now {batch_size}; a batched `tf.data.Dataset` "
        "has batches of its own)"
    )
    if policy.compute_dtype == "float32":
        advice += (
            ', or load the encoder with dtype="mixed_bfloat16" (now '
            f'"{policy.name}")'
        )
    advice += "."
    return device_errors.explained(advice, deterministic=None, compiles=False)
