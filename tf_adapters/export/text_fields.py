"""Reads the names of the texts that an exported model takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tf_adapters import heads
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.export import signatures
from tf_adapters.tasks.output_kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence


def names_of(text_fields: str | Sequence[str]) -> tuple[str, ...]:
    """Returns the names of texts as a tuple.

    Args:
        text_fields: A name, or a list of names.
    """
    if isinstance(text_fields, str):
        return (text_fields,)
    return tuple(text_fields)


def checked_fields(
    head: heads.Head, text_fields: str | Sequence[str]
) -> tuple[str, ...]:
    """Returns the names of the texts that a head reads, as a tuple.

    Args:
        head: `Head`.
        text_fields: A name, or a list of names.

    Raises:
        UserError: If the head reads another number of texts. This is not
            checked of a head whose SavedModel takes token ids only.
    """
    fields = names_of(text_fields)
    kind = KINDS[heads.name_of(head)]
    takes_texts = hasattr(signatures.signatures_of_head(head), "text_function")
    if takes_texts and len(fields) not in kind.num_fields:
        raise UserError(
            f"A head of the kind {heads.name_of(head)} reads "
            f"{kind.fields_in_words.rstrip(',')}. Received: text_fields="
            f"{shown(fields)}"
        )
    return fields
