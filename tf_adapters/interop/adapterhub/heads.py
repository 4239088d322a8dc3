"""Converts AdapterHub's `head_config.json` to our heads and back."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown
from tf_adapters.interop import heads
from tf_adapters.interop import masked_lm
from tf_adapters.interop.architectures import check_encoder
from tf_adapters.interop.formats import read_json
from tf_adapters.interop.heads import HeadForm

if TYPE_CHECKING:
    from pathlib import Path

    from tf_adapters.interop.architectures import Architecture
    from tf_adapters.interop.tensor_names import TensorName
    from tf_adapters.methods.method import EncoderShape

_MAX_CLASSES = 1_000_000
_HEAD_TYPES = {
    "text": "classification",
    "words": "tagging",
    "span": "question_answering",
    "choice": "multiple_choice",
}
_KINDS = {head_type: kind for kind, head_type in _HEAD_TYPES.items()}
_KINDS["multilabel_classification"] = "text"


def read_head(
    path: Path, shape: EncoderShape, architecture: Architecture
) -> tuple[dict[str, Any], list[TensorName], str]:
    """Reads the configuration of a head.

    Args:
        path: Path of `head_config.json`.
        shape: `EncoderShape`.
        architecture: `Architecture`.

    Returns:
        A tuple of three: the configuration of our equivalent head, its
        `TensorName`s, and the prefix of AdapterHub's tensor names.

    Raises:
        AdapterError: If the file is damaged or for another encoder, or
            tf_adapters has no such head.
    """
    config = read_json(path)
    check_encoder(config, shape, architecture, path)
    if config["config"] is None:
        return *_read_static(config, architecture), ""
    start = f"heads.{config['name']}."
    return *_read_flex(config["config"], start), start


def _read_flex(
    inner: dict[str, Any], start: str
) -> tuple[dict[str, Any], list[TensorName]]:
    """Reads a head of one of AdapterHub's own classes.

    `inner` is the value of `config` in `head_config.json`, and `start` is the
    prefix of AdapterHub's tensor names. Returns our configuration of the head,
    and its `TensorName`s. `_read_static` reads heads of `transformers`.
    """
    if inner["head_type"] == masked_lm.NAME:
        return masked_lm.read_head(inner, start)
    kind = _KINDS.get(inner["head_type"])
    if kind is None:
        raise AdapterError(
            f"tf_adapters has no head `{cut(inner['head_type'])}` of "
            "AdapterHub. Load the adapter without its head: with_head=False."
        )
    form = _flex_form(kind, inner)
    labels = []
    if kind != "choice":
        labels = _names_of_labels(inner["label2id"], inner["num_labels"])
    is_multilabel = inner["head_type"].startswith("multilabel")
    ours = form.to_config(labels, is_multilabel)
    return ours, form.tensor_names(start)


def _flex_form(kind: str, inner: dict[str, Any]) -> HeadForm:
    if inner.get("bias", True) is not True:
        raise AdapterError(
            "tf_adapters has no head without a bias. Load the adapter without "
            "its head: with_head=False."
        )
    reads = "pooled_output" if inner.get("use_pooler") else "first_token"
    if inner["layers"] == 1:
        return HeadForm(kind, reads, modules=("1",))
    hidden = str(inner["activation_function"]).lower()
    if inner["layers"] != 2 or hidden not in heads.HIDDEN_LAYERS:
        raise AdapterError(
            f"tf_adapters has no head `{cut(inner['head_type'])}` of "
            f"{cut(inner['layers'])} layers with activation `{cut(hidden)}`. "
            "Load the adapter without its head: with_head=False."
        )
    return HeadForm(kind, reads, hidden, ("4", "1"))


def _read_static(
    config: dict[str, Any], architecture: Architecture
) -> tuple[dict[str, Any], list[TensorName]]:
    name = config["model_class"]
    kinds = {
        f"{architecture.class_name}{end}": kind
        for kind, end in heads.CLASSES.items()
    }
    if name not in kinds:
        raise AdapterError(
            f"tf_adapters does not know the head of the class `{cut(name)}`. "
            "Load the adapter without its head: with_head=False."
        )
    form = heads.huggingface_form(kinds[name], architecture)
    labels = _names_of_labels(config["label2id"], config["num_labels"])
    return form.to_config(labels), form.tensor_names()


def _names_of_labels(label2id: dict[str, int] | None, number: int) -> list[str]:
    """Returns class names in the order of their ids.

    Args:
        label2id: Dict from class name to id. If empty or `None`, classes are
            called `LABEL_0`, `LABEL_1`, ...
        number: Number of classes.

    Raises:
        AdapterError: If `number` is not a number of classes, or the ids are
            not 0, 1, ..., `number` - 1.
    """
    # A damaged number could ask for billions of names.
    if type(number) is not int or not 0 <= number <= _MAX_CLASSES:
        raise AdapterError(
            f"A head's number of classes, `num_labels`, must be an integer "
            f"from 0 to {_MAX_CLASSES:,}. Received: {shown(number)}"
        )
    if not label2id:
        return [f"LABEL_{i}" for i in range(number)]
    names = sorted(label2id, key=label2id.__getitem__)
    if sorted(label2id.values()) != list(range(number)):
        raise AdapterError(
            f"A head of {number} classes names them {cut(label2id)}."
        )
    return names


def write_head(
    config: dict[str, Any], architecture: Architecture, name: str
) -> tuple[dict[str, Any], list[TensorName]]:
    """Converts a head's configuration to AdapterHub's format.

    Args:
        config: Our head's configuration.
        architecture: `Architecture`.
        name: The head's name in AdapterHub.

    Returns:
        A tuple of two: the value of `config` in `head_config.json`, and the
        head's `TensorName`s.

    Raises:
        AdapterError: If AdapterHub has no such head.
    """
    if config["name"] == masked_lm.NAME:
        return masked_lm.write_head(config, f"heads.{name}.")
    form = heads.form_of(config)
    if form.reads == "pooled_output" and architecture.prefix == "distilbert":
        raise AdapterError("DistilBERT has no pooler that a head could read.")
    has_hidden = form.hidden_layer != "none"
    modules = ("4", "1") if has_hidden else ("1",)
    form = HeadForm(form.kind, form.reads, form.hidden_layer, modules)
    inner = {"dropout_prob": config.get("dropout_rate"), **_inner(config, form)}
    return inner, form.tensor_names(f"heads.{name}.")


def _inner(config: dict[str, Any], form: HeadForm) -> dict[str, Any]:
    """Returns the value of `config` for AdapterHub's `head_config.json`.

    It does not include the dropout rate. `config` is our configuration.
    """
    has_hidden = form.hidden_layer != "none"
    is_text, is_choice = form.kind == "text", form.kind == "choice"
    labels = config.get("labels") or ["LABEL_0"]
    if is_choice or form.kind == "span":
        labels = ["LABEL_0", "LABEL_1"]
    inner = {
        "activation_function": form.hidden_layer if has_hidden else None,
        "head_type": _HEAD_TYPES[form.kind],
        "label2id": {label: i for i, label in enumerate(labels)},
        "layers": 1 + has_hidden,
        "num_choices" if is_choice else "num_labels": len(labels),
    }
    if config["name"] == "multilabel":
        inner["head_type"] = "multilabel_classification"
    if is_text or is_choice:
        inner["use_pooler"] = form.reads == "pooled_output"
    elif not has_hidden:
        # AdapterHub's default, which a head of one layer does not use.
        inner["activation_function"] = "tanh"
    return inner | ({"bias": True} if is_text else {})
