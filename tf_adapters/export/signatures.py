"""What a SavedModel takes and answers, by the kind of its head.

Each module has `token_function(model, packer)`, `warmup_inputs(packer,
text_fields)` and, where texts can be read in a graph, `text_function(model,
packer, text_fields)`. Text fields are the names of the texts in a row.
"""

from tf_adapters import heads
from tf_adapters.common.errors import UserError
from tf_adapters.export import choice_signatures
from tf_adapters.export import masked_lm_signatures
from tf_adapters.export import span_signatures
from tf_adapters.export import tagging_signatures
from tf_adapters.export import text_signatures

_MODULES = {
    heads.Classification: text_signatures,
    heads.Regression: text_signatures,
    heads.Choice: choice_signatures,
    heads.Tagging: tagging_signatures,
    heads.Span: span_signatures,
    heads.MaskedLM: masked_lm_signatures,
}


def signatures_of_head(head):
    """Returns the module for a head.

    Raises:
        UserError: If models with this head cannot be exported.
    """
    if type(head) not in _MODULES:
        raise UserError(
            f"A model with {type(head).__name__} cannot be exported. Expected: "
            f"one of {', '.join(cls.__name__ for cls in _MODULES)}."
        )
    return _MODULES[type(head)]
