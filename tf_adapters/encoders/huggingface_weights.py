"""Which tensor of a Hugging Face checkpoint is which variable of a backbone.

The tables go from the path of a KerasHub layer to the name of the PyTorch
module. Variables are found by their public paths, so no private attribute of
KerasHub is read.
"""

import math
import pathlib
import re

import numpy as np
import safetensors

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.text_files import parse_json

_BERT_BLOCK = {
    "self_attention_layer/query": "attention.self.query",
    "self_attention_layer/key": "attention.self.key",
    "self_attention_layer/value": "attention.self.value",
    "self_attention_layer/attention_output": "attention.output.dense",
    "self_attention_layer_norm": "attention.output.LayerNorm",
    "feedforward_intermediate_dense": "intermediate.dense",
    "feedforward_output_dense": "output.dense",
    "feedforward_layer_norm": "output.LayerNorm",
}
_DISTILBERT_BLOCK = {
    "self_attention_layer/query": "attention.q_lin",
    "self_attention_layer/key": "attention.k_lin",
    "self_attention_layer/value": "attention.v_lin",
    "self_attention_layer/attention_output": "attention.out_lin",
    "self_attention_layer_norm": "sa_layer_norm",
    "feedforward_intermediate_dense": "ffn.lin1",
    "feedforward_output_dense": "ffn.lin2",
    "feedforward_layer_norm": "output_layer_norm",
}


def _modules(block, blocks, **outside):
    """One table of a family; `{i}` stands for the number of a block."""
    inside = {
        f"transformer_layer_{{i}}/{layer}": f"{blocks}.{{i}}.{module}"
        for layer, module in block.items()
    }
    return {**outside, "embeddings_layer_norm": "embeddings.LayerNorm"} | inside


BERT = _modules(
    _BERT_BLOCK,
    "encoder.layer",
    token_embedding="embeddings.word_embeddings",
    position_embedding="embeddings.position_embeddings",
    segment_embedding="embeddings.token_type_embeddings",
    pooled_dense="pooler.dense",
)
ELECTRA = {**BERT, "embeddings_projection": "embeddings_project"}
_TOKEN_AND_POSITION = {
    "token_embedding": "embeddings.word_embeddings",
    "position_embedding": "embeddings.position_embeddings",
}
ROBERTA = _modules(
    _BERT_BLOCK,
    "encoder.layer",
    **{f"embeddings/{k}": v for k, v in _TOKEN_AND_POSITION.items()},
)
DISTILBERT = _modules(
    _DISTILBERT_BLOCK,
    "transformer.layer",
    **{
        f"token_and_position_embedding/{k}": v
        for k, v in _TOKEN_AND_POSITION.items()
    },
)

_SUFFIXES = {
    "kernel": "weight",
    "bias": "bias",
    "gamma": "weight",
    "beta": "bias",
    "embeddings": "weight",
}
_POSITIONS = "embeddings.position_embeddings.weight"
_POOLER = "pooler.dense.weight"
_TOKEN_TYPES = "embeddings.token_type_embeddings.weight"
# What belongs to the encoder itself; everything else is a head or a pooler.
_ENCODER = ("embeddings.", "embeddings_project.", "encoder.", "transformer.")
# Constants that old versions of transformers saved as if they were weights.
_CONSTANTS = ("embeddings.position_ids", "embeddings.token_type_ids")


def port_weights(backbone, folder, modules, prefix, first_position=0):
    """Fills a backbone's variables from a folder's safetensors files.

    Args:
        backbone: KerasHub backbone, built.
        folder: Path of the checkpoint's folder.
        modules: One of the tables above.
        prefix: Prefix that tensors may bear.
        first_position: First row of the position table that a token uses.

    Returns:
        Whether the checkpoint has a pooler that the backbone can use. Where
        it has none, the backbone's pooler is set to zero: it must not be
        read, and its initial values would differ from load to load.

    Raises:
        UserError: If a tensor is missing or has another shape than the
            config says, if the encoder has tensors that the backbone has no
            place for, or if a file cannot be read.
    """
    checkpoint = HuggingFaceCheckpoint(folder, prefix)
    names = {v.path: _tensor_name(v.path, modules) for v in backbone.weights}
    has_pooler = _POOLER in names.values() and _POOLER in checkpoint.names
    if not has_pooler:
        names = {k: v for k, v in names.items() if "pooler." not in v}
    folded = {_TOKEN_TYPES} if first_position else set()
    _check_names(set(names.values()) | folded, checkpoint)
    for variable in backbone.weights:
        if variable.path not in names:
            variable.assign(np.zeros(variable.shape, "float32"))
            continue
        name = names[variable.path]
        tensor = checkpoint.read(name)
        if name == _POSITIONS and first_position:
            # RoBERTa adds row 0 of its token types to every token; KerasHub's
            # has no token types, and every token has a position.
            tensor = tensor[first_position:] + checkpoint.read(_TOKEN_TYPES)[0]
        variable.assign(_fit(tensor, variable, name, checkpoint))
    return has_pooler


def _tensor_name(path, modules):
    layer, _, variable = path.rpartition("/")
    number = re.match(r"transformer_layer_(\d+)/", layer)
    if number:
        layer = layer.replace(number[0], "transformer_layer_{i}/")
    module = modules[layer].format(i=number[1] if number else "")
    return f"{module}.{_SUFFIXES[variable]}"


def _check_names(expected, checkpoint):
    missing = sorted(expected - checkpoint.names)
    if missing:
        raise UserError(
            f"The weights in `{checkpoint.folder}` are incomplete: "
            f"{len(missing)} of {len(expected)} tensors are missing, among "
            f"them {cut(missing[:3])}. Check that the weights belong to this "
            "config.json."
        )
    unused = sorted(
        name
        for name in checkpoint.names - expected
        if name.startswith(_ENCODER) and name not in _CONSTANTS
    )
    if unused:
        raise UserError(
            f"`{checkpoint.folder}` holds encoder weights that its "
            f"config.json has no place for: {cut(unused[:3])} and "
            f"{max(len(unused) - 3, 0)} more. Without them the outputs would "
            "not be the checkpoint's; check the number of layers in "
            "config.json."
        )


def _fit(tensor, variable, name, checkpoint):
    """Returns the tensor in the variable's layout, or says what differs."""
    shape = tuple(variable.shape)
    is_kernel = variable.path.endswith("/kernel")
    expected = shape
    if is_kernel:
        # PyTorch stores (out, in). KerasHub splits heads off: the attention's
        # output has (heads, head width, out), its inputs (in, heads, width).
        split = 2 if "/attention_output/" in variable.path else 1
        expected = (math.prod(shape[split:]), math.prod(shape[:split]))
    elif variable.path.endswith("/bias"):
        expected = (math.prod(shape),)
    if tensor.shape != expected:
        raise UserError(
            f"Tensor `{name}` in `{checkpoint.folder}` does not fit its "
            f"config.json. Expected: shape {expected}. Received: shape "
            f"{tensor.shape}"
        )
    tensor = tensor.T if is_kernel else tensor
    return np.reshape(tensor, shape)


def _names_in_index(path):
    """Returns the names of the files of weights that an index lists."""
    try:
        files = parse_json(path.read_text(encoding="utf-8"))["weight_map"]
        names = sorted(set(files.values()))
        # Nothing outside of the folder belongs to it.
        climbing = [n for n in names if pathlib.PurePath(n).name != n]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise UserError(
            f"`{path}` is damaged: expected `weight_map`, from each tensor to "
            f"its file ({type(error).__name__}: {cut(error)}). Download it "
            "again."
        ) from error
    if climbing:
        raise UserError(
            f"`{path}` names files outside of its folder: {cut(climbing[:3])}. "
            "Expected names without a path; do not trust this checkpoint."
        )
    return names


class HuggingFaceCheckpoint:
    """The tensors of a folder, by name without prefix, read when asked for.

    Args:
        folder: Path of a folder with `model.safetensors`, or with
            `model.safetensors.index.json` and the files that it names.
        prefix: Dropped from the names that begin with it.
    """

    def __init__(self, folder, prefix):
        self.folder = pathlib.Path(folder)
        self._places = {}
        for file_name in self._file_names():
            file = self._open(self.folder / file_name)
            for stored in file.keys():
                name = stored.removeprefix(prefix)
                # TensorFlow's names, in checkpoints converted before 2020.
                name = name.replace("LayerNorm.gamma", "LayerNorm.weight")
                name = name.replace("LayerNorm.beta", "LayerNorm.bias")
                self._places[name] = (file, stored)

    @property
    def names(self):
        """Set of the tensors' names."""
        return set(self._places)

    def read(self, name):
        """Returns a tensor as float32."""
        file, stored = self._places[name]
        return file.get_tensor(stored).astype("float32")

    def _file_names(self):
        if (self.folder / "model.safetensors").is_file():
            return ["model.safetensors"]
        index = self.folder / "model.safetensors.index.json"
        if index.is_file():
            return _names_in_index(index)
        if list(self.folder.glob("pytorch_model*.bin")):
            raise UserError(
                f"The weights in `{self.folder}` are a pickle "
                "(pytorch_model.bin), which can run code when it is read and "
                "is not opened here. Convert it to safetensors: load the "
                "model with transformers where you trust it and call "
                "`save_pretrained(folder)`."
            )
        raise UserError(f"`{self.folder / 'model.safetensors'}` is missing.")

    def _open(self, path):
        try:
            return safetensors.safe_open(path, framework="numpy")
        except (OSError, safetensors.SafetensorError) as error:
            raise UserError(
                f"`{path}` cannot be read ({cut(error)}). The file is damaged "
                "or incomplete: download it again."
            ) from error
