"""Hugging Face's names of the modules of each encoder family."""

import dataclasses

import keras_hub

from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import cut
from tf_adapters.encoders.mpnet import MPNetBackbone

_PROJECTIONS = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "output": "attention.output.dense",
    "ffn_up": "intermediate.dense",
    "ffn_down": "output.dense",
}
_DISTILBERT_PROJECTIONS = {
    "query": "attention.q_lin",
    "key": "attention.k_lin",
    "value": "attention.v_lin",
    "output": "attention.out_lin",
    "ffn_up": "ffn.lin1",
    "ffn_down": "ffn.lin2",
}


@dataclasses.dataclass(frozen=True)
class Architecture:
    """A family of encoders.

    Attributes:
        model_type: Hugging Face's `model_type`.
        prefix: Name of the encoder module in a model with a head.
        class_name: Prefix of its class names, `"Bert"` for example.
        blocks: Name of the list of blocks.
        projections: Dict from our name of a projection to the name of its
            module within a block.
        slots: Dict from our name of a slot to the name of the module with
            AdapterHub's adapters within a block.
        prefix_tuning: Two names: AdapterHub's module of prefixes within a
            block, and the prefix itself.
        norms: Dict from KerasHub's name of a block's norm to the name of its
            module within a block.
        pooler_in_head: Whether the pooler belongs to the classifier instead of
            the encoder.
        block_names: KerasHub's name of a block, without its number.
        in_adapterhub: Whether folders of the `adapters` library can be read
            and written. PEFT supports all families.
        takes_prefix: Whether the family's model in `transformers` accepts the
            keys and values of PEFT's prefix tuning.
    """

    model_type: str
    prefix: str
    class_name: str
    blocks: str = "encoder.layer"
    projections: dict = dataclasses.field(default_factory=lambda: _PROJECTIONS)
    slots: dict = dataclasses.field(
        default_factory=lambda: {
            "after_attention": "attention.output.adapters",
            "after_ffn": "output.adapters",
        }
    )
    prefix_tuning: tuple = ("attention.self.prefix_tuning", "self_prefix")
    norms: dict = dataclasses.field(
        default_factory=lambda: {
            "self_attention_layer_norm": "attention.output.LayerNorm",
            "feedforward_layer_norm": "output.LayerNorm",
        }
    )
    pooler_in_head: bool = False
    block_names: str = "transformer_layer"
    in_adapterhub: bool = True
    takes_prefix: bool = True

    def module(self, block, name):
        """Returns the full name of a block's module, without `prefix`."""
        return f"{self.blocks}.{block}.{name}"

    def peft_module(self, projection):
        """Returns the suffix by which PEFT finds a projection's modules.

        It is the last part of the module's name, or the whole name within the
        block if that part is `dense`, which several modules share.
        """
        name = self.projections[projection]
        last = name.rpartition(".")[2]
        return name if last == "dense" else last


_BERT = Architecture("bert", "bert", "Bert")
_ARCHITECTURES = {
    keras_hub.models.BertBackbone: _BERT,
    keras_hub.models.RobertaBackbone: Architecture(
        "roberta", "roberta", "Roberta"
    ),
    keras_hub.models.XLMRobertaBackbone: Architecture(
        "xlm-roberta", "roberta", "XLMRoberta"
    ),
    keras_hub.models.ElectraBackbone: Architecture(
        "electra", "electra", "Electra"
    ),
    keras_hub.models.DistilBertBackbone: Architecture(
        "distilbert",
        "distilbert",
        "DistilBert",
        blocks="transformer.layer",
        projections=_DISTILBERT_PROJECTIONS,
        slots={
            "after_attention": "attention_adapters.adapters",
            "after_ffn": "output_adapters.adapters",
        },
        prefix_tuning=("attention.prefix_tuning", "self"),
        norms={
            "self_attention_layer_norm": "sa_layer_norm",
            "feedforward_layer_norm": "output_layer_norm",
        },
        takes_prefix=False,
    ),
    MPNetBackbone: Architecture(
        "mpnet",
        "mpnet",
        "MPNet",
        projections={
            "query": "attention.attn.q",
            "key": "attention.attn.k",
            "value": "attention.attn.v",
            "output": "attention.attn.o",
            "ffn_up": "intermediate.dense",
            "ffn_down": "output.dense",
        },
        norms={
            "self_attention_layer_norm": "attention.LayerNorm",
            "feedforward_layer_norm": "output.LayerNorm",
        },
        in_adapterhub=False,
        takes_prefix=False,
    ),
    keras_hub.models.DebertaV3Backbone: Architecture(
        "deberta-v2",
        "deberta",
        "DebertaV2",
        projections={
            "query": "attention.self.query_proj",
            "key": "attention.self.key_proj",
            "value": "attention.self.value_proj",
            "output": "attention.output.dense",
            "ffn_up": "intermediate.dense",
            "ffn_down": "output.dense",
        },
        pooler_in_head=True,
        block_names="disentangled_attention_encoder_layer",
        in_adapterhub=False,
        takes_prefix=False,
    ),
}


def of_encoder(encoder):
    """Returns the `Architecture` of an `Encoder`.

    Raises:
        AdapterError: If AdapterHub and PEFT have no such encoder.
    """
    found = _ARCHITECTURES.get(type(encoder.backbone))
    if found is None:
        raise AdapterError(
            f"An encoder of the class {type(encoder.backbone).__name__} has no "
            "counterpart in AdapterHub and PEFT."
        )
    return found


def check_in_adapterhub(architecture):
    """Raises an `AdapterError` if AdapterHub's format lacks the family."""
    if not architecture.in_adapterhub:
        raise AdapterError(
            "Folders of the `adapters` library are not read or written for "
            f"encoders of the class {architecture.class_name}. Use PEFT's "
            "format, or this library's own."
        )


def check_model_type(found, architecture, source):
    """Raises an `AdapterError` if a folder is for another kind of encoder."""
    if found != architecture.model_type:
        raise AdapterError(
            f"{source} is an adapter for encoders of model_type "
            f"`{cut(found)}`; this one is a `{architecture.model_type}`."
        )


def check_encoder(config, shape, architecture, source):
    """Raises an `AdapterError` unless an AdapterHub configuration fits.

    Compares the model type and the width.

    Args:
        config: Dict with the top-level keys of a configuration.
        shape: `EncoderShape`.
        architecture: `Architecture`.
        source: Path, for errors.
    """
    check_model_type(config.get("model_type"), architecture, source)
    if config.get("hidden_size") != shape.width:
        raise AdapterError(
            f"{source} is an adapter for encoders of width "
            f"{cut(config.get('hidden_size'))}; this one has {shape.width}."
        )
