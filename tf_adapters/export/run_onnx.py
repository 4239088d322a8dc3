"""Runs the ONNX file in this folder on texts, and prints the answer as JSON.

    python run.py "a fine film"
    python run.py "a man sleeps" "someone is asleep"

Pass each text of a pair or triple as an argument, and choices after their
question. A sentence to be tagged needs spaces between its words. Needs
onnxruntime, tokenizers and numpy. `tf_adapters` copies this file next to an
exported model. This file does not import `tf_adapters`.
"""

import json
from pathlib import Path
import re
import sys
from typing import Any

import numpy as np
import onnxruntime
import tokenizers

FOLDER = Path(__file__).resolve().parent
Row = tuple[list[int], list[int]]  # Token ids and segment ids.


def main(texts: list[str]) -> None:
    if not texts:
        sys.exit('Give a text: python run.py "a fine film"')
    (path,) = FOLDER.glob("*.onnx")
    session = onnxruntime.InferenceSession(str(path))
    metadata = session.get_modelmeta().custom_metadata_map
    tokenizer: Any = tokenizers.Tokenizer.from_file(
        str(FOLDER / "tokenizer.json")
    )
    pad = tokenizer.padding["pad_id"]
    tokenizer.no_padding()
    head = json.loads(metadata["head"])
    fields = json.loads(metadata.get("text_fields", "[]"))
    check_count(texts, fields, head)
    if head["name"] == "tagging":
        found = tags(session, tokenizer, metadata, pad, words_of(texts[0]))
    else:
        if head["name"] == "choice" and len(fields) > 2:
            # The texts of a question are joined.
            count = len(fields) - 1
            texts = [" ".join(texts[:count]), *texts[count:]]
        rows = text_rows(tokenizer, metadata, head, texts)
        outputs = run(session, arrays(rows, pad))
        found = answer(outputs, metadata, head, texts)
    print(json.dumps(found, ensure_ascii=False))


def words_of(text: str) -> list[str]:
    """Splits a text as in training: words can contain other Unicode spaces."""
    return [word for word in re.split(r"[ \t\n\r\f\v]+", text) if word]


def check_count(
    texts: list[str], fields: list[str], head: dict[str, Any]
) -> None:
    """Exits with a message if the number of texts is wrong.

    Args:
        texts: Texts on the command line.
        fields: Names of the texts of a row; empty if they are not known.
        head: Settings of the head.
    """
    if head["name"].startswith("sentence_"):
        return
    if not fields:
        check_unknown(len(texts), head)
        return
    is_right = len(texts) == len(fields)
    if head["name"] == "choice":
        is_right = len(texts) > len(fields)  # At least two choices.
        fields = [*fields[:-1], "choice", "choice ..."]
    if not is_right:
        shown = " ".join(f'"<{field}>"' for field in fields)
        sys.exit(f"Give these texts: python run.py {shown}")


def check_unknown(count: int, head: dict[str, Any]) -> None:
    """Exits with a message if a head does not read this number of texts.

    Args:
        count: Number of texts on the command line.
        head: Settings of the head.
    """
    is_right, wanted = count < 3, "one text or two"
    if head["name"] == "choice":
        is_right, wanted = count > 2, "a question and at least two choices"
    elif head["name"] == "tagging" or head.get("windows", 1) > 1:
        is_right, wanted = count == 1, "one text"
    if not is_right:
        sys.exit(f"Give {wanted}. Received: {count} texts")


def text_rows(
    tokenizer: Any,
    metadata: dict[str, str],
    head: dict[str, Any],
    texts: list[str],
) -> list[Row]:
    """Tokenizes texts into sequences for the head, a `Row` for each."""
    if head.get("windows", 1) > 1:
        return window_rows(tokenizer, int(metadata["max_length"]), head, *texts)
    inputs = [texts]
    if head["name"] == "choice":
        inputs = [with_choice(texts[0], c, head["blank"]) for c in texts[1:]]
    elif head["name"].startswith("sentence_"):
        inputs = [[text] for text in texts]
    found = [tokenizer.encode(*one) for one in inputs]
    return [(row.ids, row.type_ids) for row in found]


def window_rows(
    tokenizer: Any,
    max_length: int,
    head: dict[str, Any],
    text: str,
) -> list[Row]:
    """Tokenizes a long text into overlapping windows, a `Row` for each."""
    start, end = tokenizer.encode("").ids
    tokenizer.no_truncation()
    tokens = tokenizer.encode(text, add_special_tokens=False).ids
    room = max_length - 2
    step = head["window_stride"] or max(1, 3 * room // 4)
    last = max(0, len(tokens) - room)
    begins = range(0, last + step, step)[: head["windows"]]
    windows = [[start, *tokens[i : i + room], end] for i in begins]
    return [(ids, [0] * len(ids)) for ids in windows]


def with_choice(question: str, choice: str, blank: str) -> list[str]:
    """Returns the two texts that the model reads for a choice.

    `blank` is the string in the question that the choice replaces, such as "_".
    It is "" if the question has none.
    """
    if not blank:
        return [question, choice]
    before, _, after = question.partition(blank)
    return [before.strip(), (choice + after).strip()]


def arrays(rows: list[Row], pad: int) -> dict[str, np.ndarray]:
    """Returns a dict of features, with token ids padded with the id `pad`."""
    length = max(len(ids) for ids, _ in rows)
    spaces = [length - len(ids) for ids, _ in rows]
    pairs = list(zip(rows, spaces, strict=True))
    features = {
        "token_ids": [ids + [pad] * n for (ids, _), n in pairs],
        "padding_mask": [[1] * len(i) + [0] * n for (i, _), n in pairs],
        "segment_ids": [numbers + [0] * n for (_, numbers), n in pairs],
    }
    return {name: np.array(v, "int32") for name, v in features.items()}


def run(
    session: onnxruntime.InferenceSession, features: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Runs the model, and returns a dict from output name to array.

    If the model reads several sequences for a row, the sequences in `features`
    form one row.
    """
    feed = {}
    for value in session.get_inputs():
        array = features[value.name]
        feed[value.name] = array[None] if len(value.shape) == 3 else array
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(None, feed), strict=True))


def answer(
    outputs: dict[str, np.ndarray],
    metadata: dict[str, str],
    head: dict[str, Any],
    texts: list[str],
) -> dict[str, Any]:
    """Returns the dict that `tf-adapters predict` prints for the texts."""
    if "score" in outputs:
        return {"score": round(float(outputs["score"][0]), 6)}
    if head["name"] == "choice":
        return chosen(outputs["logits"][0].astype("float64"), texts[1:])
    if "outputs" in outputs:
        return compared(outputs["outputs"][0])
    labels = json.loads(metadata["labels"])
    values = [round(float(value), 6) for value in outputs["probabilities"][0]]
    probabilities = dict(zip(labels, values, strict=True))
    threshold = head.get("threshold")
    if threshold is None:
        label = labels[int(np.argmax(outputs["logits"][0]))]
        return {"label": label, "probabilities": probabilities}
    is_there = outputs["probabilities"][0] >= threshold
    there = [labels[i] for i in np.flatnonzero(is_there)]
    return {"labels": there, "probabilities": probabilities}


def chosen(logits: np.ndarray, choices: list[str]) -> dict[str, Any]:
    """Returns the most likely choice, and the probabilities of all choices."""
    place = int(np.argmax(logits))
    scores = np.exp(logits - logits.max())
    return {
        "label": place,
        "choice": choices[place],
        "probabilities": [round(float(s), 6) for s in scores / scores.sum()],
    }


def compared(vectors: np.ndarray) -> dict[str, Any]:
    """Returns the vector of a single text.

    If there are several vectors, returns the cosine similarity of the first one
    to each of the others.
    """
    if len(vectors) == 1:
        return {"vector": np.round(vectors[0].astype("float64"), 6).tolist()}
    names = ("score", "negative_score")
    cosines = [round(float(v), 6) for v in vectors[1:] @ vectors[0]]
    return dict(zip(names, cosines, strict=False))


def tags(
    session: onnxruntime.InferenceSession,
    tokenizer: Any,
    metadata: dict[str, str],
    pad: int,
    words: list[str],
) -> dict[str, Any]:
    """Predicts a tag for each word, and returns `{"tags": [...]}`.

    A long sentence is split between words into several sequences.
    """
    start, end = tokenizer.encode("").ids
    tokenizer.no_truncation()
    room = int(metadata["max_length"]) - 2
    prefix, unknown = metadata["word_prefix"], int(metadata["unknown_id"])
    parts, firsts = [[]], [[]]
    for word in words:
        row = tokenizer.encode(prefix + word, add_special_tokens=False)
        ids = row.ids or [unknown]
        if parts[-1] and len(parts[-1]) + len(ids) > room:
            parts.append([])
            firsts.append([])
        firsts[-1].append(1 + len(parts[-1]))
        parts[-1] += ids
    rows = [[start, *part[:room], end] for part in parts]
    features = arrays([(row, [0] * len(row)) for row in rows], pad)
    logits = run(session, features)["logits"]
    best = [logits[i, of_row] for i, of_row in enumerate(firsts) if of_row]
    labels = json.loads(metadata["labels"])
    return {"tags": [labels[i] for b in best for i in b.argmax(axis=-1)]}


if __name__ == "__main__":
    screen: Any = sys.stdout
    screen.reconfigure(encoding="utf-8")
    main(sys.argv[1:])
