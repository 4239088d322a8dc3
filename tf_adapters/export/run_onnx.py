"""Runs the ONNX file in this folder on a text or a pair of texts.

    python run.py "a fine film"

Needs onnxruntime, tokenizers and numpy. `tf_adapters` copies this file next to
an exported model; it does not import it.
"""

import json
from pathlib import Path
import sys
from typing import Any

import numpy as np
import onnxruntime
import tokenizers

FOLDER = Path(__file__).resolve().parent


def main(texts: list[str]) -> None:
    session = onnxruntime.InferenceSession(str(FOLDER / "model.onnx"))
    tokenizer: Any = tokenizers.Tokenizer.from_file(
        str(FOLDER / "tokenizer.json")
    )
    tokens = tokenizer.encode(*texts)
    features = {
        "token_ids": tokens.ids,
        "padding_mask": tokens.attention_mask,
        "segment_ids": tokens.type_ids,
    }
    names = [value.name for value in session.get_inputs()]
    feed = {name: np.array([features[name]], "int32") for name in names}
    names = [value.name for value in session.get_outputs()]
    outputs = dict(zip(names, session.run(None, feed), strict=True))
    metadata = session.get_modelmeta().custom_metadata_map
    print(json.dumps(answer(outputs, metadata), ensure_ascii=False))


def answer(
    outputs: dict[str, np.ndarray], metadata: dict[str, str]
) -> dict[str, Any]:
    """Returns the dict that `tf-adapters predict` prints for the text."""
    if "score" in outputs:
        return {"score": round(float(outputs["score"][0]), 6)}
    labels = json.loads(metadata["labels"])
    values = [round(float(value), 6) for value in outputs["probabilities"][0]]
    probabilities = dict(zip(labels, values, strict=True))
    threshold = json.loads(metadata["head"]).get("threshold")
    if threshold is None:
        label = labels[int(np.argmax(outputs["logits"][0]))]
        return {"label": label, "probabilities": probabilities}
    is_there = outputs["probabilities"][0] >= threshold
    there = [labels[i] for i in np.flatnonzero(is_there)]
    return {"labels": there, "probabilities": probabilities}


if __name__ == "__main__":
    screen: Any = sys.stdout
    screen.reconfigure(encoding="utf-8")
    main(sys.argv[1:])
