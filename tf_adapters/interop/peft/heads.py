"""Converts heads in PEFT's folders to ours and back."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import shown
from tf_adapters.encoders.huggingface import FAMILIES
from tf_adapters.interop import heads
from tf_adapters.interop.architectures import check_head

if TYPE_CHECKING:
    import numpy as np

    from tf_adapters.interop.architectures import Architecture
    from tf_adapters.interop.tensor_names import TensorName

# PEFT's task and the modules that it saves, by kind of head (see `HeadForm`).
_KINDS = {
    "text": ("SEQ_CLS", ["classifier", "score"]),
    "words": ("TOKEN_CLS", ["classifier", "score"]),
    "span": ("QUESTION_ANS", ["qa_outputs"]),
}
POOLER = "pooler.dense"


def _forms(kind: str, architecture: Architecture) -> tuple[heads.HeadForm, ...]:
    """Returns the `HeadForm`s that a PEFT head of a kind can have.

    The usual one is first. `kind` is a kind of head, see `HeadForm`.
    """
    form = heads.huggingface_form(kind, architecture)
    if form.reads != "pooled_output":
        return (form,)
    # In our head, a trained pooler is the hidden layer.
    modules = ("classifier", POOLER)
    return form, heads.HeadForm(kind, hidden_layer="tanh", modules=modules)


def read_head(
    config: dict[str, Any],
    tensors: dict[str, np.ndarray],
    architecture: Architecture,
) -> heads.HeadForm | None:
    """Returns the `HeadForm` of a folder's head, or `None` if it has no head.

    Args:
        config: Contents of `adapter_config.json`.
        tensors: Dict from PEFT's names, without prefixes, to arrays.
        architecture: `Architecture`.
    """
    task = config.get("task_type")
    wrapped = (config.get("auto_mapping") or {}).get("base_model_class", "")
    by_task = [k for k, (name, _) in _KINDS.items() if name == task]
    by_class = [k for k in _KINDS if wrapped.endswith(heads.CLASSES[k])]
    kind = next(iter(by_task + by_class), None)
    if kind is None:
        return None
    forms = _forms(kind, architecture)
    return forms[-1 if f"{POOLER}.weight" in tensors else 0]


def without_head(
    tensors: dict[str, np.ndarray], architecture: Architecture, with_head: bool
) -> dict[str, np.ndarray]:
    """Removes the tensors of a head that has a norm.

    Heads of tf_adapters have no norm, so they cannot use these tensors.

    Raises:
        AdapterError: If there are such tensors and `with_head` is `True`.
    """
    of_head = {n for n in tensors if n.startswith(("classifier.", "head."))}
    if of_head and with_head:
        check_head(architecture)
    return {k: v for k, v in tensors.items() if k not in of_head}


def without_saved(
    config: dict[str, Any],
    tensors: dict[str, np.ndarray],
    architecture: Architecture,
    with_head: bool,
) -> dict[str, np.ndarray]:
    """Removes the tensors of saved modules that the encoder does not have.

    These are a head of any class, also of one that has no task in PEFT.

    Args:
        config: Contents of `adapter_config.json`.
        tensors: Dict from PEFT's names, without prefixes, to arrays.
        architecture: `Architecture`.
        with_head: Whether the head is wanted.

    Raises:
        AdapterError: If there are such tensors and `with_head` is `True`.
    """
    modules = config.get("modules_to_save") or ()
    saved = {module.partition(".")[0] for module in modules}
    # Without one of the encoder's own modules, its outputs would differ.
    names = FAMILIES[architecture.model_type].modules.values()
    saved -= {"pooler", *(name.partition(".")[0] for name in names)}
    of_head = {name for name in tensors if name.partition(".")[0] in saved}
    if of_head and with_head:
        raise AdapterError(
            "tf_adapters does not know the kind of this head: `task_type` is "
            f"{shown(config.get('task_type'))}. Load the adapter without its "
            "head: with_head=False."
        )
    return {k: v for k, v in tensors.items() if k not in of_head}


def write_head(
    config: dict[str, Any] | None, architecture: Architecture
) -> tuple[str, list[TensorName], list[str] | None]:
    """Converts a head's configuration to PEFT's format.

    Returns a tuple of three: PEFT's `task_type`, the head's `TensorName`s, and
    the list `modules_to_save` or `None`.

    Args:
        config: Our head's configuration, or `None`.
        architecture: `Architecture`.

    Raises:
        AdapterError: If PEFT has no such head.
    """
    if config is None:
        return "FEATURE_EXTRACTION", [], None
    check_head(architecture)
    if config["name"] == "multilabel":
        raise AdapterError(
            "PEFT's folder does not say that texts can have several labels: "
            "use --format=adapterhub, or --with_head=false."
        )
    ours = heads.form_of(config)
    if ours.kind not in _KINDS:
        raise AdapterError(
            "PEFT has no multiple-choice task. Export the adapter with "
            "--format=adapterhub, or without its head: --with_head=false."
        )
    forms = _forms(ours.kind, architecture)
    for form in forms:
        if (ours.reads, ours.hidden_layer) == (form.reads, form.hidden_layer):
            task, saved = _KINDS[ours.kind]
            pooler = ["pooler"] if POOLER in form.modules else []
            return task, form.tensor_names(), saved + pooler
    settings = f"head.hidden_layer={forms[0].hidden_layer}"
    if ours.kind == "text":
        settings = f"head.reads={forms[0].reads},{settings}"
    raise AdapterError(
        "PEFT saves the head of "
        f"{architecture.class_name}{heads.CLASSES[ours.kind]}, but this head "
        f"differs: train with --params_override={settings}, export with "
        "--format=adapterhub, or without its head: --with_head=false."
    )


def check_prefix(task: str, architecture: Architecture) -> None:
    """Raises an `AdapterError` if PEFT's prefix tuning cannot run on a model.

    Args:
        task: PEFT's task type.
        architecture: `Architecture`.
    """
    if not architecture.takes_prefix:
        raise AdapterError(
            f"PEFT's prefix tuning does not run on {architecture.class_name}."
        )
    if task == _KINDS["text"][0] and architecture.model_type != "bert":
        raise AdapterError(
            "PEFT's prefix tuning does not run on "
            f"{architecture.class_name}{heads.CLASSES['text']}, which has no "
            "pooler. Export it without its head: --with_head=false."
        )
