"""Maps the `adapters` library's names to our variables."""

PLACES = {
    "after_attention": "attention.output",
    "after_ffn": "output",
}


def of(model, prefix, adapter):
    """Yields the library's name, our variable, and whether it is transposed.

    Args:
        model: `AdaptedEncoder` or `AdapterModel` of Houlsby or Pfeiffer.
        prefix: Prefix of the library's names for the encoder.
        adapter: The adapter's name in the library.
    """
    for i, slots in enumerate(model.slots):
        block = model.encoder.blocks[i]
        for place, path in PLACES.items():
            start = f"{prefix}.encoder.layer.{i}.{path}"
            norm = (
                block.attention_norm if "attention" in place else block.ffn_norm
            )
            yield f"{start}.LayerNorm.weight", norm.gamma, False
            yield f"{start}.LayerNorm.bias", norm.beta, False
            if place not in slots:
                continue
            delta, start = slots[place].delta, f"{start}.adapters.{adapter}"
            yield f"{start}.adapter_down.0.weight", delta.down_kernel, True
            yield f"{start}.adapter_down.0.bias", delta.down_bias, False
            yield f"{start}.adapter_up.weight", delta.up_kernel, True
            yield f"{start}.adapter_up.bias", delta.up_bias, False
    start = f"{prefix}.embeddings.LayerNorm"
    yield f"{start}.weight", model.encoder.embedding_norm.gamma, False
    yield f"{start}.bias", model.encoder.embedding_norm.beta, False
