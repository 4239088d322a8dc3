"""The baseline without an encoder, registered as a method for `--method`.

The preset `no_bert` imports this module.
"""

from collections.abc import Callable
import dataclasses
from typing import Any

from tf_adapters.common.errors import UserError
from tf_adapters.methods.method import Method
from tf_adapters.methods.registry import register


@register("no_bert")
@dataclasses.dataclass(frozen=True)
class NoBert(Method):
    """Searches for a small network on word embeddings, without an encoder.

    This is the "no BERT baseline" of Houlsby et al. 2019, section 3.3 and table
    2. It adds nothing to an encoder. `no_bert_search` trains it, and `search`
    in the configuration defines the search space.
    """

    def make_slots(self, shape: Any) -> None:
        raise UserError(
            "`no_bert` is a baseline without an encoder, so there is nothing "
            "to adapt. `--method=no_bert` trains it."
        )

    def own_training(self) -> Callable[..., Any]:
        # Imported here, because it imports KerasHub.
        from tf_adapters.papers.baselines import no_bert_search

        return no_bert_search.run_search
