"""Parses fields that hold a list of strings, and the labels of such rows."""

from __future__ import annotations

from collections.abc import Sequence
import re
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown
from tf_adapters.common.text_files import check_unicode
from tf_adapters.common.text_files import parse_json
from tf_adapters.data.examples import IGNORED
from tf_adapters.data.rows.class_ids import class_id

if TYPE_CHECKING:
    from tf_adapters.tasks.task import Task


# The spaces that separate words. Exported taggers split at the same ones. Words
# can contain other Unicode spaces.
_BLANKS = re.compile(r"[ \t\n\r\f\v]+")

# CoNLL-U's mark for no tag.
_NO_TAG = "_"


def list_of_texts(fields: Any, field: str, task: Task) -> list[Any]:
    """Returns the choices or the words in a row, as a list of strings.

    Choices are a list, a list as JSON (in CSV and TSV), or the values of
    `task.choice_fields`. Words are a list, or a text with spaces between words.

    Args:
        fields: Dict, the row.
        field: Name of the field with the list.
        task: `Task`.

    Raises:
        UserError: If the field is missing or empty, or is not a list of texts.
    """
    value = fields.get(task.aliases.get(field, field), fields.get(field))
    names = task.choice_fields
    if value is None and names and all(name in fields for name in names):
        parts = [fields[name] for name in names]
        value = parts[0] if len(names) == 1 else parts
    if value is None:
        received = ", ".join(f"`{name}`" for name in fields) or "no field"
        raise UserError(f"field `{field}` is missing; received {cut(received)}")
    if isinstance(value, str):
        is_words = task.kind.list_field == "words"
        value = words_of(value) if is_words else _parse(field, value)
    is_list = isinstance(value, list) and value
    if not is_list or not all(isinstance(text, str) for text in value):
        raise UserError(
            f"field `{field}` must be a list of texts, received {shown(value)}"
        )
    if task.kind.list_field == "choices" and "" in value:
        # A served model pads questions of fewer choices with empty texts.
        raise UserError(
            f"field `{field}` has an empty text at position {value.index('')} "
            "(the first is 0), which is not a choice; leave it out"
        )
    for text in value:
        check_unicode(text)
    return value


def words_of(text: str) -> list[Any]:
    """Returns the words of a text, which are separated by ASCII spaces."""
    return [word for word in _BLANKS.split(text) if word]


def _parse(field: str, text: str) -> Any:
    try:
        return parse_json(text)
    except ValueError as error:
        raise UserError(
            f"field `{field}` must be a list of texts as JSON, for example "
            f'["yes", "no"], received {shown(text)}'
        ) from error


def parse_tags(
    value: Any, words: Any, labels: Sequence[str]
) -> list[int] | None:
    """Returns the class id of each word, or `None` if there are no labels.

    Words without a label get `IGNORED`.

    Args:
        value: List of class names or ids (see `class_ids`), or a string with
            spaces between them. "_" also means no label.
        words: The words, or `None` if they were malformed.
        labels: Class names in the order of their ids.

    Raises:
        UserError: If a label is unknown, or if there are not as many labels as
            words.
    """
    if value is None or value == "":
        return None
    tags = words_of(value) if isinstance(value, str) else value
    if not isinstance(tags, list):
        raise UserError(
            f"labels must be a list of tags, received {shown(value)}"
        )
    if words is not None and len(tags) != len(words):
        raise UserError(
            f"{len(words)} words have {len(tags)} tags; expected one for each"
        )
    return [_tag_id(tag, labels) for tag in tags]


def _tag_id(tag: Any, labels: Sequence[str]) -> int:
    if tag == _NO_TAG and tag not in labels:
        return IGNORED
    found = class_id(tag, labels)
    return IGNORED if found is None else found


def parse_classes(value: Any, labels: Sequence[str]) -> list[int] | None:
    """Returns the sorted ids of a row's classes, or `None` for no label.

    Args:
        value: List of class names or ids (see `class_ids`), or a list as JSON
            (in CSV and TSV). An empty list is a label: the row has no class.
        labels: Class names in the order of their ids.

    Raises:
        UserError: If a class is unknown, or the value is not a list, or is a 0
            or 1 for each class. With two classes, `[0, 1]` is a list of ids,
            but `[1, 0]` is an error unless they are called "0" and "1".
    """
    if value is None or value == "":
        return None
    if isinstance(value, str):
        value = _parse("label", value)
    if not isinstance(value, list):
        raise UserError(
            f"labels must be a list of classes, received {shown(value)}"
        )
    given = {*map(str, value)}
    is_hot = len(value) == len(labels) and given <= {"0", "1"}
    # Of two classes, only [0, 1] can be ids. Names can be in any order.
    is_ids = [*map(str, value)] == ["0", "1"] or given == {*labels}
    if is_hot and (len(labels) > 2 or not is_ids):
        raise UserError(
            "labels must be a list of classes, by name or id, and not a 0 or 1 "
            f"for each class; received {shown(value)}"
        )
    ids = (class_id(name, labels) for name in value)
    return sorted({one for one in ids if one is not None})


def parse_choice_index(value: Any, choices: Any) -> int | None:
    """Returns the index of the right choice, or `None` for no label.

    Args:
        value: Integer or its digits, counted from 0. `None`, empty text and -1
            mean no label.
        choices: The list of choices, or `None` if it was malformed.

    Raises:
        UserError: If there is no choice with this index.
    """
    if value is None or value == "":
        return None
    is_number = isinstance(value, int) and not isinstance(value, bool)
    is_digits = isinstance(value, str) and value.removeprefix("-").isdecimal()
    if is_number or is_digits:
        if int(value) == -1:
            return None
        if choices is None or 0 <= int(value) < len(choices):
            return int(value)
    last = "the last" if choices is None else len(choices) - 1
    raise UserError(
        f"a label must be the position of the right choice, from 0 to {last}, "
        f"received {shown(value)}"
    )
