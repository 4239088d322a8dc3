"""Rows in the form that the scripts in `peers` read."""

import json


def write(rows, text_fields, path):
    """Writes rows as JSONL with `text_a`, `text_b` for pairs, and `label`."""
    with open(path, "w", encoding="utf-8") as file:
        for row in rows:
            keys = ("text_a", "text_b")[: len(text_fields)]
            texts = dict(zip(keys, map(row.get, text_fields), strict=True))
            file.write(json.dumps({**texts, "label": row["label"]}) + "\n")
