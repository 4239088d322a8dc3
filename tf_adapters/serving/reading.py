"""Converts the instances of a request to the rows that a head encodes."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters import heads
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.tasks.output_kinds import KINDS
from tf_adapters.text import columns
from tf_adapters.text import rows as text_rows
from tf_adapters.text.stored_fields import stored_fields

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

# The length of `TextModel`, which an adapter of another library was not trained
# with either.
_MAX_LENGTH = 128
# Two texts need three special tokens, and at least one token each.
_SHORTEST = 5


@dataclasses.dataclass(frozen=True)
class Reading:
    """How an adapter reads texts.

    Attributes:
        head: The adapter's `Head`.
        fields: Names of the texts of an instance.
        max_length: Maximum number of tokens of an instance.
    """

    head: heads.Head
    fields: tuple[str, ...]
    max_length: int

    @property
    def takes_words(self) -> bool:
        """Whether an instance is a list of words."""
        return KINDS[heads.name_of(self.head)].list_field == "words"

    def rows(self, instances: Sequence[Any]) -> list[dict[str, Any]]:
        """Returns a row for each instance: a dict from text field to text.

        Raises:
            UserError: If an instance does not have the adapter's fields.
        """
        rows = [self._row(i, one) for i, one in enumerate(instances)]
        found = text_rows.rows_of(
            rows, None, self.head, text=self.fields, labeled=False
        )
        return found.at(range(len(found)))

    def _row(self, place: int, instance: Any) -> dict[str, Any]:
        fields = self.fields
        if len(fields) == 1:
            if isinstance(instance, dict) and instance.keys() == {"text"}:
                instance = instance["text"]
            if not isinstance(instance, dict):
                instance = {fields[0]: instance}
        elif isinstance(instance, list) and len(instance) == len(fields):
            instance = dict(zip(fields, instance, strict=True))
        if not isinstance(instance, dict) or instance.keys() != set(fields):
            names = ", ".join(f"`{name}`" for name in fields)
            raise UserError(
                f"Instance {place} (the first is 0) must have a text for each "
                f"of the adapter's fields: {names}."
            )
        if self.takes_words:
            instance = {name: _words(text) for name, text in instance.items()}
        return instance


def _words(text: Any) -> Any:
    return text.split() if isinstance(text, str) else text


def reading_of(
    head: heads.Head | None,
    folder: Path,
    details: dict[str, Any],
    longest: int | None,
) -> Reading:
    """Returns how the adapter in a folder reads texts.

    Args:
        head: The adapter's head, or `None` if it has none.
        folder: Path of the adapter's folder. If it belongs to a run, the run's
            configuration names the text fields.
        details: The `details` in `adapter_config.json`, or an empty dict.
        longest: Maximum number of tokens of the encoder, or `None`.

    Raises:
        AdapterError: If there is no head, or `details` has wrong values.
    """
    if head is None:
        raise AdapterError(f"{folder} has no head, so it cannot answer.")
    length = details.get("max_length") or _MAX_LENGTH
    _check_length(folder, length)
    fields = stored_fields(folder, details)
    return Reading(
        head,
        fields or columns.usual_fields(head),
        min(length, longest or length),
    )


def _check_length(folder: Path, length: Any) -> None:
    # `True` is an integer, too.
    if type(length) is not int or length < _SHORTEST:
        raise AdapterError(
            f"In `adapter_config.json` of {folder}, `max_length` must be an "
            f"integer of at least {_SHORTEST}. Received: {shown(length)}"
        )
