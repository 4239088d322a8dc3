"""Applies the encoder in this folder (an ONNX file), with an adapter, to texts.

    python run.py --adapter=runs/reviews "a fine film"

The adapter is a folder with `adapter_config.json` and `adapter.safetensors`, or
a run folder, which holds it as `adapter`. Its head must be a classification,
with one class or several per text, or a regression.
Needs onnxruntime, tokenizers, safetensors and numpy. `tf_adapters` copies this
file next to an exported encoder. This file does not import `tf_adapters`.
"""

import argparse
import json
from pathlib import Path
import sys
from typing import Any

import numpy as np
import onnxruntime
from safetensors.numpy import load_file
import tokenizers

FOLDER = Path(__file__).resolve().parent
HEADS = ("classification", "multilabel", "regression")


def main(adapter: Path, texts: list[str]) -> None:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # Avoid a warning for each optional input.
    session = onnxruntime.InferenceSession(
        str(FOLDER / "encoder.onnx"), options
    )
    if not (adapter / "adapter_config.json").is_file():
        adapter /= "adapter"
    if not (adapter / "adapter_config.json").is_file():
        sys.exit(f"There is no adapter in {adapter.parent}.")
    config = json.loads((adapter / "adapter_config.json").read_text("utf-8"))
    check(config, session.get_modelmeta().custom_metadata_map)
    check_texts(texts, config.get("details", {}).get("text_fields") or [])
    weights = load_file(adapter / "adapter.safetensors")
    shapes = {v.name: v.shape for v in session.get_overridable_initializers()}
    length = config.get("details", {}).get("max_length")
    feed = features(session, texts, length) | filled(weights, shapes)
    (logits,) = session.run(["logits"], feed)
    print(json.dumps(answer(logits[0], config["head"]), ensure_ascii=False))


def check(config: dict[str, Any], metadata: dict[str, str]) -> None:
    """Exits with a message if an adapter does not fit the encoder's file."""
    method, head = json.loads(metadata["method"]), config["head"] or {}
    expected = {
        "encoder": metadata["encoder_fingerprint"],
        "method": method,
        "adapters below it": None,
        "left-out blocks": json.loads(metadata["left_out"]),
        "what the head reads": metadata["reads"],
        "windows of a text": 1,
    }
    found = {
        "encoder": config["encoder"]["fingerprint"],
        "method": {name: config["method"].get(name) for name in method},
        "adapters below it": config.get("below"),
        "left-out blocks": config.get("left_out", []),
        "what the head reads": head.get("reads"),
        "windows of a text": head.get("windows", 1),
    }
    # An adapter of a float encoder also runs on a quantized one.
    trained_on = config["encoder"].get("quantization")
    if trained_on:
        expected["quantization of the encoder"] = metadata["quantization"]
        found["quantization of the encoder"] = trained_on
    for name, value in expected.items():
        if found[name] != value:
            sys.exit(
                f"The adapter does not fit the file: expected as {name} "
                f"{value}. Received: {found[name]}"
            )
    if head.get("name") not in HEADS:
        sys.exit(
            f"This program answers for heads of the kinds {', '.join(HEADS)}. "
            f"Received: {head.get('name')}"
        )


def check_texts(texts: list[str], fields: list[str]) -> None:
    """Exits with a message if the number of texts is wrong.

    Args:
        texts: Texts on the command line.
        fields: Names of the adapter's texts; empty if they are not known.
    """
    if fields and len(texts) != len(fields):
        shown = " ".join(f'"<{field}>"' for field in fields)
        sys.exit(f"Give these texts: python run.py --adapter=... {shown}")
    if len(texts) > 2:
        sys.exit(f"Give one text or two. Received: {len(texts)} texts")


def filled(
    weights: dict[str, np.ndarray], shapes: dict[str, list[int | str]]
) -> dict[str, np.ndarray]:
    """Pads the weights of an adapter with zeros to the shapes of the inputs.

    Only a bottleneck that is narrower than the file's needs padding.
    """
    if weights.keys() != shapes.keys():
        names = ", ".join(sorted(weights.keys() ^ shapes.keys()))
        sys.exit(f"The adapter and the file do not both have {names}.")
    for name, value in weights.items():
        # An input takes any size along an axis that has a name as its size.
        sizes = zip(shapes[name], value.shape, strict=True)
        missing = [0 if isinstance(s, str) else s - has for s, has in sizes]
        if min(missing) < 0:
            sys.exit(
                f"The adapter's {name} is {value.shape}, more than the file's "
                f"{shapes[name]}. Export the file from the widest adapter."
            )
        weights[name] = np.pad(value, [(0, number) for number in missing])
    return weights


def features(
    session: onnxruntime.InferenceSession,
    texts: list[str],
    max_length: int | None,
) -> dict[str, np.ndarray]:
    """Returns the token features of a text or a pair of texts.

    They have at most `max_length` tokens, or if it is `None`, as many as those
    of the run that was exported.
    """
    tokenizer: Any = tokenizers.Tokenizer.from_file(
        str(FOLDER / "tokenizer.json")
    )
    if max_length is not None:
        limits = {**(tokenizer.truncation or {}), "max_length": max_length}
        tokenizer.enable_truncation(**limits)
    tokens = tokenizer.encode(*texts)
    found = {
        "token_ids": tokens.ids,
        "padding_mask": tokens.attention_mask,
        "segment_ids": tokens.type_ids,
    }
    names = [value.name for value in session.get_inputs()]
    return {name: np.array([found[name]], "int32") for name in names}


def answer(logits: np.ndarray, head: dict[str, Any]) -> dict[str, Any]:
    """Returns the dict that `tf-adapters predict` prints for the text."""
    labels, threshold = head.get("labels"), head.get("threshold")
    if not labels:
        return {"score": round(float(logits[0]), 6)}
    if threshold is None:
        scaled = np.exp((logits - logits.max()) / head["temperature"])
        row = scaled / scaled.sum()
    else:
        row = 1 / (1 + np.exp(-logits))
    values = [round(float(value), 6) for value in row]
    probabilities = dict(zip(labels, values, strict=True))
    if threshold is None:
        label = labels[int(np.argmax(logits))]
        return {"label": label, "probabilities": probabilities}
    there = [labels[i] for i in np.flatnonzero(row >= threshold)]
    return {"labels": there, "probabilities": probabilities}


if __name__ == "__main__":
    screen: Any = sys.stdout
    screen.reconfigure(encoding="utf-8")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--adapter", required=True, type=Path)
    parser.add_argument("texts", nargs="+", metavar="TEXT")
    arguments = parser.parse_args()
    main(arguments.adapter, arguments.texts)
