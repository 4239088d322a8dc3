"""Runs the ONNX file of many tasks in this folder on a text or a pair of texts.

    python run.py --task=sst2 "a fine film"

Needs onnxruntime, tokenizers and numpy. `tf_adapters` copies this file next to
an exported model. This file does not import `tf_adapters`.
"""

import argparse
import json
from pathlib import Path
import sys
from typing import Any

import numpy as np
import onnxruntime
import tokenizers

FOLDER = Path(__file__).resolve().parent


def main(task: str, texts: list[str]) -> None:
    (path,) = FOLDER.glob(
        "model*.onnx"
    )  # A quantized file's name ends in int8.
    session = onnxruntime.InferenceSession(str(path))
    metadata = session.get_modelmeta().custom_metadata_map
    tasks = json.loads(metadata["tasks"])
    if task not in tasks:
        sys.exit(f"The file has no task `{task}`. It has: {', '.join(tasks)}.")
    facts = tasks[task]
    fields = facts["text_fields"]
    if len(texts) != len(fields):
        sys.exit(f"The task `{task}` reads {', '.join(fields)}: give each.")
    tokenizer: Any = tokenizers.Tokenizer.from_file(
        str(FOLDER / "tokenizer.json")
    )
    tokens = tokenizer.encode(*texts)
    features = {
        "token_ids": [tokens.ids],
        "padding_mask": [tokens.attention_mask],
        "segment_ids": [tokens.type_ids],
        "adapter_ids": [facts["adapter_id"]],
    }
    names = [value.name for value in session.get_inputs()]
    feed = {name: np.array(features[name], "int32") for name in names}
    names = [value.name for value in session.get_outputs()]
    outputs = dict(zip(names, session.run(None, feed), strict=True))
    print(json.dumps(answer(outputs, facts), ensure_ascii=False))


def answer(
    outputs: dict[str, np.ndarray], facts: dict[str, Any]
) -> dict[str, Any]:
    """Returns the dict that `tf-adapters predict` prints for the text.

    `facts` is the entry of the task in the file's metadata.
    """
    labels = facts["labels"]
    if not labels:
        return {"score": round(float(outputs["score"][0]), 6)}
    row = outputs["probabilities"][0, : len(labels)]
    values = [round(float(value), 6) for value in row]
    probabilities = dict(zip(labels, values, strict=True))
    threshold = facts["head"].get("threshold")
    if threshold is None:
        label = labels[int(np.argmax(row))]
        return {"label": label, "probabilities": probabilities}
    there = [labels[i] for i in np.flatnonzero(row >= threshold)]
    return {"labels": there, "probabilities": probabilities}


if __name__ == "__main__":
    screen: Any = sys.stdout
    screen.reconfigure(encoding="utf-8")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", required=True)
    parser.add_argument("texts", nargs="+", metavar="TEXT")
    arguments = parser.parse_args()
    main(arguments.task, arguments.texts)
