"""Reads adapter folders of Hugging Face's PEFT (`peft` 0.21.2)."""

from pathlib import Path
import re

from tf_adapters import methods
from tf_adapters.common import adapter_folder
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown
from tf_adapters.interop import heads
from tf_adapters.interop import tensor_names
from tf_adapters.interop.adapterhub import folder as adapterhub_folder
from tf_adapters.interop.architectures import check_model_type
from tf_adapters.interop.peft import lora as peft_lora
from tf_adapters.interop.peft import names as peft_names
from tf_adapters.interop.tensor_names import TensorName

_COMMON = {
    "auto_mapping",
    "base_model_name_or_path",
    "inference_mode",
    "modules_to_save",
    "peft_type",
    "peft_version",
    "revision",
    "task_type",
}
_PROMPT = {
    "encoder_hidden_size",
    "init_weights",
    "num_attention_heads",
    "num_layers",
    "num_transformer_submodules",
    "num_virtual_tokens",
    "prefix_projection",
    "prompt_tuning_init",
    "prompt_tuning_init_text",
    "token_dim",
    "tokenizer_kwargs",
    "tokenizer_name_or_path",
}


class PeftConfig(dict):
    """A parsed `adapter_config.json` of PEFT.

    Args:
        values: Dict.
        source: Path, for errors.
    """

    def __init__(self, values, source):
        super().__init__(values)
        self.source = source

    def check_known(self, known):
        """Raises an `AdapterError` if an unknown key has a value."""
        for key, value in self.items():
            if key not in known and key not in _COMMON and value:
                raise AdapterError(
                    f"{self.source} has `{key}: {shown(value)}`, which "
                    "tf_adapters has no method for."
                )

    def check(self, key, *allowed):
        """Raises an `AdapterError` unless a key has one of these values.

        Args:
            key: Key of the configuration.
            *allowed: Values. The first counts if the key is missing.
        """
        if self.get(key, allowed[0]) not in allowed:
            raise AdapterError(
                f"{self.source} has `{key}: {shown(self[key])}`, which "
                "tf_adapters has no method for."
            )

    def to_ours(self, names, tensors):
        """Converts tensors to a dict from our names to float32 arrays."""
        return tensor_names.to_ours(names, tensors, self.source.parent)


def read_adapter(folder, config, shape, architecture, with_head=True):
    """Reads an adapter folder.

    Arguments and returned values are those of `read_adapter` in
    `interop/adapterhub/folder.py`.
    """
    folder = Path(folder)
    path = folder / adapter_folder.CONFIG_FILE
    config = PeftConfig(config, path)
    readers = {
        "LORA": peft_lora.read,
        "IA3": _read_ia3,
        "LN_TUNING": _read_norms,
        "PREFIX_TUNING": _read_prefix,
        "PROMPT_TUNING": _read_prompt,
    }
    _check_model(config, architecture)
    kind = config["peft_type"]
    if kind not in readers:
        raise AdapterError(
            f"{path} is a `{cut(kind)}`; the kinds of PEFT that tf_adapters "
            f"supports are {', '.join(readers)}."
        )
    tensors = _without_prefix(_read_weights(folder), architecture)
    form, names = _head_form(config, tensors, architecture)
    of_head = {n for name in names for n in name.theirs}
    head_tensors = {k: v for k, v in tensors.items() if k in of_head}
    rest = {k: v for k, v in tensors.items() if k not in of_head}
    method, found = readers[kind](config, shape, architecture, rest)
    if not with_head:
        return method, None, found
    found |= config.to_ours(names, head_tensors)
    if form is None:
        return method, None, found
    number = len(found["head/bias"])
    labels = [f"LABEL_{i}" for i in range(number)]
    return method, form.to_config(labels), found


def _check_model(config, architecture):
    """Raises an error if the configuration is for another kind of encoder.

    Only configurations of models without a task name the encoder. For others,
    a wrong encoder shows in the names of the tensors.
    """
    mapping = config.get("auto_mapping") or {}
    found = re.match(
        r"transformers\.models\.(\w+)", mapping.get("parent_library") or ""
    )
    if found:
        model_type = found[1].replace("_", "-")
        check_model_type(model_type, architecture, config.source)


def _read_weights(folder):
    safe = folder / "adapter_model.safetensors"
    if safe.exists():
        return adapter_folder.read_tensors(safe)
    return adapterhub_folder.read_weights(folder / "adapter_model.bin")


def _without_prefix(tensors, architecture):
    """Strips the prefixes of PEFT and of the encoder from tensor names."""
    found = {}
    for name, tensor in tensors.items():
        for start in ("base_model.", "model.", f"{architecture.prefix}."):
            name = name.removeprefix(start)
        if name in found:
            raise ValueError(f"two tensors have the name `{cut(name)}`")
        found[name] = tensor
    return found


def _kind_of_head(config):
    """Returns the kind of a folder's head (see `HeadForm`), or `None`."""
    kinds = {task: kind for kind, task in peft_names.TASKS.items()}
    task = config.get("task_type")
    if task in kinds:
        return kinds[task]
    wrapped = (config.get("auto_mapping") or {}).get("base_model_class", "")
    ends = {
        end: kind
        for kind, end in heads.CLASSES.items()
        if kind in peft_names.TASKS
    }
    found = [kind for end, kind in ends.items() if wrapped.endswith(end)]
    return found[0] if found else None


def _head_form(config, tensors, architecture):
    """Returns the `HeadForm`, or `None`, and the head's `TensorName`s."""
    kind = _kind_of_head(config)
    if kind is None:
        return None, []
    form = heads.huggingface_form(kind, architecture)
    if (
        form.reads == "pooled_output"
        and f"{peft_names.POOLER}.weight" in tensors
    ):
        # A trained pooler is a hidden layer of our head.
        form = heads.HeadForm(
            kind, hidden_layer="tanh", modules=("classifier", peft_names.POOLER)
        )
    return form, form.tensor_names()


def _read_ia3(config, shape, architecture, tensors):
    config.check_known(
        {"exclude_modules", "feedforward_modules", "init_ia3_weights"}
        | {"target_modules", "fan_in_fan_out"}
    )
    config.check("fan_in_fan_out", False)
    method = methods.IA3(form="peft")
    names = peft_names.ia3_names(method, shape, architecture)
    found = {name.removesuffix(".weight"): v for name, v in tensors.items()}
    try:
        return method, config.to_ours(names, found)
    except AdapterError as error:
        raise AdapterError(
            f"{error} tf_adapters has PEFT's (IA)^3 on BERT's default modules: "
            "key, value, and both that end in output.dense."
        ) from error


def _read_norms(config, shape, architecture, tensors):
    config.check_known({"exclude_modules", "target_modules"})
    names = peft_names.norm_names(shape, architecture)
    return methods.LayerNorm(), config.to_ours(names, tensors)


def _vectors(name, tensors, config, shape, width):
    """Reads the vectors of a prompt or prefix, and checks the encoder's size.

    The tensor's shape alone does not show that it is for another encoder.
    """
    config.check_known(_PROMPT)
    sizes = {"num_layers": shape.num_blocks, "token_dim": width}
    for key, size in sizes.items():
        if config.get(key) not in (None, size):
            raise AdapterError(
                f"{config.source} is for encoders of `{key}: "
                f"{cut(config[key])}`; this one has {size}."
            )
    names = [TensorName(name, ("prompt_embeddings",))]
    return config.to_ours(names, tensors)


def _read_prefix(config, shape, architecture, tensors):
    # PEFT saves the output of the projection, not the projection itself.
    width = shape.width
    found = _vectors("shared_prefix/vectors", tensors, config, shape, width)
    length = config["num_virtual_tokens"]
    return methods.PrefixTuning(length, 0, form="peft"), found


def _read_prompt(config, shape, architecture, tensors):
    width = shape.read_in("word_embeddings")
    found = _vectors("prompt/vectors", tensors, config, shape, width)
    return methods.PromptTuning(config["num_virtual_tokens"], "peft"), found
