"""The names that Hugging Face gives the modules of each encoder family."""

import dataclasses
import functools
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

import keras_hub

from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import cut
from tf_adapters.encoders.huggingface import FAMILIES
from tf_adapters.encoders.modernbert import ModernBertBackbone
from tf_adapters.encoders.mpnet import MPNetBackbone

if TYPE_CHECKING:
    from tf_adapters.encoders.encoder import Encoder
    from tf_adapters.methods.method import EncoderShape

# Paths of the layers in KerasHub's blocks.
_PROJECTIONS = {
    "query": "self_attention_layer/query",
    "key": "self_attention_layer/key",
    "value": "self_attention_layer/value",
    "output": "self_attention_layer/attention_output",
    "ffn_up": "feedforward_intermediate_dense",
    "ffn_down": "feedforward_output_dense",
}
_NORMS = ("self_attention_layer_norm", "feedforward_layer_norm")


@dataclasses.dataclass(frozen=True)
class Architecture:
    """A family of encoders, and the names of its modules at Hugging Face.

    Attributes:
        model_type: Hugging Face's `model_type`.
        class_name: Prefix of the family's class names, such as `"Bert"`.
        slots: Dict from our name of a slot to the module within a block that
            holds AdapterHub's adapters.
        prefix_tuning: A pair of names in AdapterHub: of the module that holds
            prefixes (within a block), and of the prefix within that module.
        pooler_in_head: Whether the pooler belongs to the classifier instead of
            the encoder.
        in_adapterhub: Whether folders of the `adapters` library can be read
            and written. PEFT supports all families.
        takes_prefix: Whether the family's model in `transformers` accepts the
            keys and values of PEFT's prefix tuning.
        layers: Dict from our name of a projection to the path of its layer in
            the backbone's blocks.
        fused: Projections that share one module, in the order of its outputs.
        has_norm_in_head: Whether the family's heads in `transformers` have a
            norm. Our heads have none.
    """

    model_type: str
    class_name: str
    slots: dict[str, Any] = dataclasses.field(
        default_factory=lambda: {
            "after_attention": "attention.output.adapters",
            "after_ffn": "output.adapters",
        }
    )
    prefix_tuning: tuple[Any, ...] = (
        "attention.self.prefix_tuning",
        "self_prefix",
    )
    pooler_in_head: bool = False
    in_adapterhub: bool = True
    takes_prefix: bool = True
    layers: dict[str, Any] = dataclasses.field(
        default_factory=lambda: _PROJECTIONS
    )
    fused: tuple[Any, ...] = ()
    has_norm_in_head: bool = False

    @property
    def prefix(self) -> str:
        """Name of the encoder in a model with a head, such as `"bert"`."""
        return FAMILIES[self.model_type].prefix.removesuffix(".")

    @property
    def projections(self) -> dict[str, str]:
        """Dict from our name of a projection to its module at Hugging Face.

        The module's name is relative to the block.
        """
        modules = {k: self._in_block[path] for k, path in self.layers.items()}
        # `FAMILIES` appends the projection's name to the shared module's.
        own = {name: modules[name].rpartition(".")[0] for name in self.fused}
        return modules | own

    @property
    def norms(self) -> dict[str, str]:
        """Dict from KerasHub's name of a block's norm to Hugging Face's."""
        return {name: self._in_block[name] for name in _NORMS}

    @property
    def block_names(self) -> str:
        """KerasHub's name of a block, without its number."""
        return self._query[0].partition("_{}/")[0]

    @property
    def blocks(self) -> str:
        """Hugging Face's name of the list of blocks."""
        return self._query[1].partition(".{}.")[0]

    @property
    def _query(self) -> tuple[str, str]:
        """Path of the query projection in KerasHub, and in Hugging Face.

        Both contain `{}` for the index of the block.
        """
        modules = FAMILIES[self.model_type].modules.items()
        return next(m for m in modules if m[0].endswith(self.layers["query"]))

    @functools.cached_property
    def _in_block(self) -> dict[str, str]:
        """Dict from KerasHub's path of a layer to Hugging Face's module.

        Both are relative to the block.
        """
        return {
            path.partition("_{}/")[2]: module.partition(".{}.")[2]
            for path, module in FAMILIES[self.model_type].modules.items()
        }

    def module(self, block: int, name: str) -> str:
        """Returns Hugging Face's name of a module in a block.

        The name begins with `blocks`, and does not include `prefix`.
        """
        return f"{self.blocks}.{block}.{name}"

    def peft_module(self, projection: str) -> str:
        """Returns the name by which PEFT finds a projection in every block.

        It is the last part of the module's name, such as `query`. If several
        modules share the last part, such as `dense`, it is the whole name
        within the block.
        """
        name = self.projections[projection]
        last = name.rpartition(".")[2]
        named = set(self.projections.values())
        sharing = [one for one in named if one.rpartition(".")[2] == last]
        return name if len(sharing) > 1 else last


_ARCHITECTURES = {
    keras_hub.models.BertBackbone: Architecture("bert", "Bert"),
    keras_hub.models.RobertaBackbone: Architecture("roberta", "Roberta"),
    keras_hub.models.XLMRobertaBackbone: Architecture(
        "xlm-roberta", "XLMRoberta"
    ),
    keras_hub.models.ElectraBackbone: Architecture("electra", "Electra"),
    keras_hub.models.DistilBertBackbone: Architecture(
        "distilbert",
        "DistilBert",
        slots={
            "after_attention": "attention_adapters.adapters",
            "after_ffn": "output_adapters.adapters",
        },
        prefix_tuning=("attention.prefix_tuning", "self"),
        takes_prefix=False,
    ),
    MPNetBackbone: Architecture(
        "mpnet", "MPNet", in_adapterhub=False, takes_prefix=False
    ),
    keras_hub.models.DebertaV3Backbone: Architecture(
        "deberta-v2",
        "DebertaV2",
        pooler_in_head=True,
        in_adapterhub=False,
        takes_prefix=False,
    ),
    ModernBertBackbone: Architecture(
        "modernbert",
        "ModernBert",
        in_adapterhub=False,
        takes_prefix=False,
        layers={
            "query": "query",
            "key": "key",
            "value": "value",
            "output": "attention_output",
            "ffn_up": "feedforward_intermediate_dense",
            "ffn_down": "feedforward_output_dense",
        },
        fused=("query", "key", "value"),
        has_norm_in_head=True,
    ),
}


def of_encoder(encoder: "Encoder") -> Architecture:
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


def check_in_adapterhub(architecture: Architecture) -> None:
    """Raises an `AdapterError` if AdapterHub has no such encoder family."""
    if not architecture.in_adapterhub:
        raise AdapterError(
            "Folders of the `adapters` library are not read or written for "
            f"encoders of the class {architecture.class_name}. Use PEFT's "
            "format, or this library's own."
        )


def check_not_fused(architecture: Architecture, kind: str) -> None:
    """Raises an error if a PEFT adapter cannot be attached to shared modules.

    Args:
        architecture: `Architecture`.
        kind: PEFT's name of the kind, its `peft_type`.

    Raises:
        AdapterError: If the kind needs one module for each projection, but
            projections of the encoder share a module.
    """
    if architecture.fused and kind in ("IA3", "LN_TUNING"):
        raise AdapterError(
            f"Of PEFT's kinds, LoRA and prompt tuning are read and written for "
            f"encoders of the class {architecture.class_name}. Received: "
            f"{kind}"
        )


def check_head(architecture: Architecture) -> None:
    """Raises an `AdapterError` if an encoder family's heads are unsupported.

    Some families' heads in `transformers` have a norm. Our heads have none.
    """
    if architecture.has_norm_in_head:
        raise AdapterError(
            f"The heads of {architecture.class_name} in transformers have a "
            "norm, which those of tf_adapters do not. Read or write the "
            "adapter without head: with_head=False, or --with_head=false."
        )


def check_model_type(
    found: object, architecture: Architecture, source: Path
) -> None:
    """Raises an `AdapterError` if a folder is for another kind of encoder.

    `found` is the `model_type` in the folder's configuration.
    """
    if found != architecture.model_type:
        raise AdapterError(
            f"{source} is an adapter for encoders of model_type "
            f"`{cut(found)}`; this one is a `{architecture.model_type}`."
        )


def check_encoder(
    config: dict[str, Any],
    shape: "EncoderShape",
    architecture: Architecture,
    source: Path,
) -> None:
    """Raises an `AdapterError` if an adapter does not fit the encoder.

    Compares the `model_type` and the width.

    Args:
        config: Contents of one of AdapterHub's JSON files.
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
