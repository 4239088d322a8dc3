"""Finds the module that defines a SavedModel's inputs and outputs for a head.

Each module has `token_function(model, packer)` and `warmup_inputs(packer,
text_fields)`. If texts can be processed in a graph, it also has
`text_function(model, packer, text_fields)`. If there are more signatures, it
has `further_functions(model, packer)`. `text_fields` are the names of the texts
in a row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tf_adapters.common.errors import UserError
from tf_adapters.export import choice_signatures
from tf_adapters.export import masked_lm_signatures
from tf_adapters.export import span_signatures
from tf_adapters.export import tagging_signatures
from tf_adapters.export import text_signatures
from tf_adapters.export import vector_signatures
from tf_adapters.export import window_signatures

if TYPE_CHECKING:
    from types import ModuleType

    from tf_adapters.heads.head import Head

# Maps the `signature` of a head to its module.
_MODULES = {
    "text": text_signatures,
    "windows": window_signatures,
    "vectors": vector_signatures,
    "choice": choice_signatures,
    "words": tagging_signatures,
    "span": span_signatures,
    "masked_lm": masked_lm_signatures,
}


def signatures_of_head(head: Head | None) -> ModuleType:
    """Returns the module that defines the signatures of a head.

    Raises:
        UserError: If models with this head cannot be exported.
    """
    if head is None or head.signature not in _MODULES:
        raise UserError(
            f"A model with {type(head).__name__} cannot be exported. Expected: "
            f"a head whose `signature` is one of {', '.join(_MODULES)}."
        )
    return _MODULES[head.signature]
