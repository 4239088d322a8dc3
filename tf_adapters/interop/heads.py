"""Converts heads between our configurations and other libraries' classes.

A head of tf_adapters is represented by its configuration, the dict in
`adapter_config.json`.
"""

from collections.abc import Sequence
import dataclasses
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.errors import AdapterError
from tf_adapters.interop.tensor_names import TensorName
from tf_adapters.interop.tensor_names import linear

if TYPE_CHECKING:
    from tf_adapters.interop.architectures import Architecture

HIDDEN_LAYERS = ("tanh", "relu", "gelu")


@dataclasses.dataclass(frozen=True)
class HeadForm:
    """The structure of a head, without its class names.

    Attributes:
        kind: `"text"` classifies or scores a text, `"words"` each token,
            `"span"` finds a start and an end, `"choice"` scores each choice.
        reads: Encoder output that the head takes as its input:
            `"first_token"` or `"pooled_output"`. Used by the kinds `"text"` and
            `"choice"`.
        hidden_layer: See `TextHead`.
        modules: The other library's names of the output layer and, if there is
            one, of the hidden layer.
    """

    kind: str
    reads: str = "first_token"
    hidden_layer: str = "none"
    modules: tuple[str, ...] = ("classifier",)

    def tensor_names(self, prefix: str = "") -> list[TensorName]:
        """Returns the names of the head's tensors in both libraries.

        Args:
            prefix: Prefix of the modules' names.
        """
        output = "head/score/" if self.kind == "choice" else "head/"
        names = linear(output, f"{prefix}{self.modules[0]}")
        if self.hidden_layer != "none":
            hidden = f"{prefix}{self.modules[1]}"
            names += linear(f"{output}hidden_", hidden)
        return names

    def to_config(
        self, labels: Sequence[str], is_multilabel: bool = False
    ) -> dict[str, Any]:
        """Returns the configuration of the equivalent head of tf_adapters.

        Args:
            labels: Class names. Exactly one means regression, unless
                `is_multilabel`.
            is_multilabel: Whether the head is for multi-label classification.
        """
        hidden = {"hidden_layer": self.hidden_layer}
        if self.kind == "span":
            return {"name": "span", **hidden}
        if self.kind == "words":
            return {"name": "tagging", "labels": list(labels), **hidden}
        config = {"reads": self.reads, **hidden}
        if self.kind == "choice":
            return {"name": "choice", **config}
        if len(labels) == 1 and not is_multilabel:
            return {"name": "regression", **config}
        name = "multilabel" if is_multilabel else "classification"
        return {"name": name, "labels": list(labels), **config}


_KINDS = {
    "classification": "text",
    "multilabel": "text",
    "regression": "text",
    "tagging": "words",
    "span": "span",
    "choice": "choice",
}
# Dict from a kind of head to the end of the class's name in `transformers`. The
# name begins with the architecture's `class_name`.
CLASSES = {
    "text": "ForSequenceClassification",
    "words": "ForTokenClassification",
    "span": "ForQuestionAnswering",
    "choice": "ForMultipleChoice",
}


def form_of(config: dict[str, Any]) -> HeadForm:
    """Converts a head's configuration to a `HeadForm` without `modules`.

    Raises:
        AdapterError: If the other libraries have no such head.
    """
    kind = _KINDS.get(config["name"])
    if kind is None:
        raise AdapterError(
            f"A head `{config['name']}` has no counterpart in this format. "
            "Save the adapter without it: --with_head=false."
        )
    if config.get("windows", 1) > 1:
        raise AdapterError(
            "This head pools the windows of a long text, which this format "
            "cannot store. Save the adapter without it: --with_head=false."
        )
    if config.get("threshold", 0.5) != 0.5:
        raise AdapterError(
            f"This format cannot store the head's threshold, "
            f"{config['threshold']}. Save the adapter without its head "
            "(--with_head=false), or set the threshold to 0.5 first."
        )
    reads = config.get("reads", "first_token")
    return HeadForm(kind, reads, config.get("hidden_layer", "none"), ())


def huggingface_form(kind: str, architecture: "Architecture") -> HeadForm:
    """Returns the `HeadForm` of a head that `transformers` defines.

    Args:
        kind: See `HeadForm`.
        architecture: `Architecture` of the encoder.
    """
    if kind == "words":
        return HeadForm(kind)
    if kind == "span":
        return HeadForm(kind, modules=("qa_outputs",))
    is_linear = architecture.model_type == "bert" or (
        kind == "choice" and architecture.prefix in ("roberta", "mpnet")
    )
    if is_linear:
        return HeadForm(kind, "pooled_output")
    activations = {
        "roberta": "tanh",
        "mpnet": "tanh",
        "electra": "gelu",
        "distilbert": "relu",
        "deberta": "gelu",
    }
    modules = ("classifier.out_proj", "classifier.dense")
    if architecture.prefix == "distilbert":
        modules = ("classifier", "pre_classifier")
    elif architecture.prefix == "deberta":
        modules = ("classifier", "pooler.dense")
    elif kind == "choice":
        modules = ("classifier", "sequence_summary.summary")
    hidden_layer = activations[architecture.prefix]
    return HeadForm(kind, hidden_layer=hidden_layer, modules=modules)
