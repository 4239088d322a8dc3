"""Finds the encoder that a server's adapters have in common."""

from __future__ import annotations

import contextlib

from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.interop import formats
from tf_adapters.interop import stored_adapter


def encoder_of(
    sources: dict[str, str], quantize: str | None = None
) -> tuple[str, str | None]:
    """Returns the name and the quantization of the encoder of adapters.

    Args:
        sources: Dict from the name of each adapter to its path or address.
        quantize: Quantization to serve with. `None` (default) means the one
            that the adapters were trained with.

    Raises:
        ConfigError: If no adapter names its encoder, or if they name several,
            or one with several quantizations and `quantize` is `None`.
    """
    found, modes = {}, set()
    for name, source in sources.items():
        # A damaged folder is reported to those who ask for the adapter.
        with contextlib.suppress(UserError):
            stored = stored_adapter.find_stored(source)
            if stored.format == formats.OURS and stored.parsed is not None:
                encoder = stored.config["encoder"]
                found.setdefault(encoder["fingerprint"], (name, encoder))
                modes.add(encoder.get("quantization"))
    if not found:
        raise ConfigError(
            "None of the adapters says which encoder it belongs to. Give it: "
            "--encoder=minilm."
        )
    if len(found) > 1:
        named = ", ".join(
            f"`{cut(name)}` has `{cut(encoder['name'])}`"
            for name, encoder in found.values()
        )
        raise ConfigError(
            "A server has one encoder, and these adapters have different ones: "
            f"{cut(named)}. Give the one to serve with --encoder. Requests for "
            "the other adapters are then refused with status 409."
        )
    ((_, encoder),) = found.values()
    return encoder["name"], quantize or _quantization_of(modes)


def _quantization_of(modes: set[str | None]) -> str | None:
    """Returns the quantization that all adapters load on."""
    # Adapters of an encoder that is not quantized load on a quantized one, but
    # not the other way around.
    quantized = sorted(mode for mode in modes if mode)
    if len(quantized) > 1:
        raise ConfigError(
            "A server has one encoder, and these adapters were trained on it "
            f"with different quantizations: {cut(', '.join(quantized))}. Give "
            "the one to serve with --quantize. Requests for the adapters of "
            "the other one are then refused with status 409."
        )
    return quantized[0] if quantized else None
