"""Fields that hold a list of texts, and labels that belong to such a list."""

import re

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown
from tf_adapters.common.text_files import parse_json
from tf_adapters.data.encoded import IGNORED
from tf_adapters.data.rows.class_ids import class_id

# As exported taggers split; at other spaces nothing ends: a word may hold one.
_BLANKS = re.compile(r"[ \t\n\r\f\v]+")

# What stands for no tag in CoNLL-U.
_NO_TAG = "_"


def list_of_texts(fields, field, task):
    """Returns the list of texts in a row.

    Choices are a list, JSON for one (in CSV and TSV), or stand in
    `task.choice_fields`. Words are a list, or a text with blanks between them.

    Raises:
        UserError: If it is missing, empty, or holds something else.
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
        value = _words(value) if is_words else _parse(field, value)
    is_list = isinstance(value, list) and value
    if not is_list or not all(isinstance(text, str) for text in value):
        raise UserError(
            f"field `{field}` must be a list of texts, received {shown(value)}"
        )
    if task.kind.list_field == "choices" and "" in value:
        # Where it is served, an empty text fills up questions of fewer choices.
        raise UserError(
            f"field `{field}` has an empty text in place {value.index('')} "
            "(the first is 0), which is no choice; leave it out"
        )
    return value


def _words(text):
    return [word for word in _BLANKS.split(text) if word]


def _parse(field, text):
    try:
        return parse_json(text)
    except ValueError as error:
        raise UserError(
            f"field `{field}` must be a list of texts as JSON, for example "
            f'["yes", "no"], received {shown(text)}'
        ) from error


def parse_tags(value, words, labels):
    """Returns the class id of each word, or None where there are no labels.

    Args:
        value: List of class names or ids, see `class_ids`, or a text with
            blanks between them. "_", too, stands for no label of a word.
        words: The words; None if they were malformed.
        labels: Class names in the order of their ids.

    Raises:
        UserError: If a label is unknown, or there are more or fewer of them
            than words.
    """
    if value is None or value == "":
        return None
    tags = _words(value) if isinstance(value, str) else value
    if not isinstance(tags, list):
        raise UserError(
            f"labels must be a list of tags, received {shown(value)}"
        )
    if words is not None and len(tags) != len(words):
        raise UserError(
            f"{len(words)} words have {len(tags)} tags; expected one for each"
        )
    return [_tag_id(tag, labels) for tag in tags]


def _tag_id(tag, labels):
    if tag == _NO_TAG and tag not in labels:
        return IGNORED
    found = class_id(tag, labels)
    return IGNORED if found is None else found


def parse_classes(value, labels):
    """Returns the ids of a row's classes, or None where there is no label.

    Args:
        value: List of class names or ids, see `class_ids`, or JSON for one (in
            CSV and TSV). An empty list is a label: none of the classes.
        labels: Class names in the order of their ids.

    Raises:
        UserError: If one is unknown, or it is no list.
    """
    if value is None or value == "":
        return None
    if isinstance(value, str):
        value = _parse("label", value)
    if not isinstance(value, list):
        raise UserError(
            f"labels must be a list of classes, received {shown(value)}"
        )
    return sorted({class_id(name, labels) for name in value} - {None})


def parse_choice_index(value, choices):
    """Returns the place of the right choice, or None where there is no label.

    Args:
        value: Integer or its digits; None, empty text and -1 stand for none.
        choices: The list that it points into; None if that was malformed.

    Raises:
        UserError: If there is no such place.
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
        "a label must be the place of the right choice, from 0 to "
        f"{last}, received {shown(value)}"
    )
