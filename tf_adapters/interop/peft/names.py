"""PEFT's names of tasks, modules and tensors."""

from tf_adapters.interop.tensor_names import TensorName

TASKS = {"text": "SEQ_CLS", "words": "TOKEN_CLS", "span": "QUESTION_ANS"}
POOLER = "pooler.dense"
# PEFT's layout of each projection's vector of (IA)^3; see `TensorName`.
IA3 = {"key": "column", "value": "column", "output": "row", "ffn_down": "row"}


def ia3_names(method, shape, architecture):
    """Returns the `TensorName` of each vector of (IA)^3."""
    return [
        TensorName(
            f"block_{block}_{name}/vector",
            (f"{architecture.module(block, module)}.ia3_l",),
            layout,
        )
        for block, kept in enumerate(method.kept_blocks(shape))
        for name, layout in IA3.items()
        for module in (architecture.projections[name],)
        if kept
    ]


def norm_names(shape, architecture):
    """Returns the `TensorName` of each norm's weights."""
    modules = {"embeddings_layer_norm": "embeddings.LayerNorm"} | {
        f"{architecture.block_names}_{block}/{ours}": architecture.module(
            block, theirs
        )
        for block in range(shape.num_blocks)
        for ours, theirs in architecture.norms.items()
    }
    return [
        TensorName(f"{ours}/{mine}", (f"{theirs}.ln_tuning_layers.{part}",))
        for ours, theirs in modules.items()
        for mine, part in (("gamma", "weight"), ("beta", "bias"))
    ]
