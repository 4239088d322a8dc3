"""Converts the instances of a request to the rows that a head encodes."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters import heads
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.data.rows import list_fields
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
        fields: Names of the texts of an instance. `None` if the adapter does
            not name them: then the instances of a request decide how many
            texts there are, and have the usual names.
        max_length: Maximum number of tokens of an instance.
    """

    head: heads.Head
    fields: tuple[str, ...] | None
    max_length: int

    @property
    def takes_words(self) -> bool:
        """Whether an instance is a list of words."""
        return KINDS[heads.name_of(self.head)].list_field == "words"

    @property
    def possible_fields(self) -> list[tuple[str, ...]]:
        """Names of the texts that an instance may have: one or more tuples."""
        if self.fields is not None:
            return [self.fields]
        numbers = KINDS[heads.name_of(self.head)].num_fields
        usual = [columns.usual_fields(self.head, n) for n in numbers]
        return list(dict.fromkeys(usual))

    def question(self, instances: Sequence[Any]) -> Question:
        """Returns the instances of a request as a `Question`.

        Raises:
            UserError: If an instance does not have the adapter's fields.
        """
        fields = self._fields_of(instances[0])
        rows = [self._row(i, one, fields) for i, one in enumerate(instances)]
        found = text_rows.rows_of(
            rows, None, self.head, text=fields, labeled=False
        )
        return Question(self, fields, found.at(range(len(found))))

    def _fields_of(self, instance: Any) -> tuple[str, ...]:
        """Returns the possible fields that an instance has, or the last."""
        several = isinstance(instance, list | dict)
        number = len(instance) if several else 1
        possible = self.possible_fields
        return next((f for f in possible if len(f) == number), possible[-1])

    def _row(
        self, place: int, instance: Any, fields: tuple[str, ...]
    ) -> dict[str, Any]:
        if len(fields) == 1:
            if isinstance(instance, dict) and instance.keys() == {"text"}:
                instance = instance["text"]
            if not isinstance(instance, dict):
                instance = {fields[0]: instance}
        elif isinstance(instance, list) and len(instance) == len(fields):
            instance = dict(zip(fields, instance, strict=True))
        if not isinstance(instance, dict) or instance.keys() != set(fields):
            raise UserError(self._other_fields(place, fields))
        if self.takes_words:
            instance = {name: _words(text) for name, text in instance.items()}
        return instance

    def _other_fields(self, place: int, fields: tuple[str, ...]) -> str:
        """Returns the message for an instance with other fields."""
        others = [_listed(f) for f in self.possible_fields if f != fields]
        instead = f", or instead: {' or: '.join(others)}" if others else ""
        return (
            f"Instance {place} (the first is 0) must have a text for each of "
            f"the adapter's fields: {_listed(fields)}{instead}. All instances "
            "of a request have the same fields."
        )


@dataclasses.dataclass(frozen=True)
class Question:
    """The rows of one request, and how its adapter reads them.

    Attributes:
        reading: The adapter's `Reading`.
        fields: Names of the texts of each row.
        rows: List of dicts from text field to text.
    """

    reading: Reading
    fields: tuple[str, ...]
    rows: list[dict[str, Any]]


def _listed(fields: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in fields)


def _words(text: Any) -> Any:
    return list_fields.words_of(text) if isinstance(text, str) else text


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
    return Reading(head, fields, min(length, longest or length))


def _check_length(folder: Path, length: Any) -> None:
    # `True` is an integer, too.
    if type(length) is not int or length < _SHORTEST:
        raise AdapterError(
            f"In `adapter_config.json` of {folder}, `max_length` must be an "
            f"integer of at least {_SHORTEST}. Received: {shown(length)}"
        )
