"""Loads what `benchmarks/interchange.py` wrote, and compares the answers.

    .venv-peer/bin/python benchmarks/peers/interchange.py <folder>

Prints a line for each folder, and exits with 1 if a tensor is missing or
unexpected, or if an answer differs by more than 1e-5 of the largest.
"""

import json
import logging
from pathlib import Path
import sys
import warnings

import adapters
import peft
from safetensors.torch import load_file
import torch
import transformers

_CLASSES = {
    "SEQ_CLS": transformers.AutoModelForSequenceClassification,
    "TOKEN_CLS": transformers.AutoModelForTokenClassification,
    "QUESTION_ANS": transformers.AutoModelForQuestionAnswering,
}


def _of_adapters(folder, facts):
    """Returns a model of the `adapters` library, and unfit tensors."""
    model = adapters.AutoAdapterModel.from_pretrained(
        facts["encoder"], attn_implementation="eager"
    )
    notes = {}
    model.load_adapter(
        str(folder), set_active=True, use_safetensors=True, loading_info=notes
    )
    unfit = notes.get("missing_keys", []) + notes.get("unexpected_keys", [])
    # Of a head `adapters` says that all but it is missing.
    unfit = [name for name in unfit if "task" in name]
    options = {"head": "task"} if facts["head"] else {}
    return model, unfit, options


def _of_peft(folder, facts):
    """Returns a model of PEFT, and unfit tensors."""
    config = json.loads((folder / "adapter_config.json").read_text())
    options = {}
    weights = load_file(folder / "adapter_model.safetensors")
    for name, weight in weights.items():
        outputs = ("classifier", "out_proj", "qa_outputs")
        if name.split(".")[-2:][0] in outputs and name.endswith("weight"):
            options["num_labels"] = len(weight)
    base = _CLASSES.get(config["task_type"], transformers.AutoModel)
    model = base.from_pretrained(facts["encoder"], **options)
    result = peft.PeftModel.from_pretrained(model, str(folder))
    stored = peft.get_peft_model_state_dict(result)
    return result, sorted(set(stored) ^ set(weights)), {}


def _answer(model, inputs, options):
    arguments = {
        "input_ids": inputs["token_ids"],
        "attention_mask": inputs["padding_mask"],
        **options,
    }
    # In float64, so that what differs is ours.
    output = model.eval().double()(**arguments)
    if hasattr(output, "start_logits"):
        return torch.stack([output.start_logits, output.end_logits], -1)
    return getattr(output, "logits", getattr(output, "last_hidden_state", None))


def _difference(output, wanted, mask):
    """Returns the largest difference, as a part of the largest answer."""
    # There the output includes a prompt's tokens, in ours it does not.
    output = output[:, -wanted.shape[1] :] if wanted.ndim == 3 else output
    output = output.reshape(wanted.shape)
    if wanted.ndim == 3:
        output, wanted = output * mask[:, :, None], wanted * mask[:, :, None]
    return ((output - wanted).abs().max() / wanted.abs().max()).item()


def _compare(folder):
    """Returns how far answers differ, and the names of unfit tensors."""
    facts = json.loads((folder / "about.json").read_text())
    load = _of_peft if facts["format"] == "peft" else _of_adapters
    model, unfit, options = load(folder / "task", facts)
    inputs = load_file(folder / "expected.safetensors")
    wanted = inputs.pop("output")
    output = _answer(model, inputs, options)
    return _difference(output, wanted, inputs["padding_mask"]), unfit


def main():
    logging.disable(logging.WARNING)
    transformers.logging.set_verbosity_error()
    torch.set_grad_enabled(False)
    warnings.simplefilter("ignore")
    bad, largest = 0, 0.0
    folders = sorted(p.parent for p in Path(sys.argv[1]).glob("*/about.json"))
    for folder in folders:
        try:
            difference, unfit = _compare(folder)
        # Whatever the library makes of a folder, the others are looked at.
        except Exception as error:
            difference, unfit = float("nan"), [repr(error)]
        failed = bool(unfit) or not difference < 1e-5
        bad += failed
        largest = max(largest, difference)
        print(f"{folder.name:<50} {difference:.1e} {', '.join(unfit)[:200]}")
    print(f"{len(folders)} folders, {bad} differ, by {largest:.1e} at most")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
