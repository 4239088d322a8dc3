"""The fixtures with folders of other libraries, and their expected outputs."""

import json
from pathlib import Path

from tf_adapters.encoders.load import load_encoder
from tf_adapters.heads import MaskedLM

ROOT = Path(__file__).parents[1] / "fixtures"
FIXTURES = ROOT / "interop"
CASES = sorted(
    f"{path.parent.name}/{path.stem}"
    for path in FIXTURES.glob("*/*.safetensors")
)
_ENCODERS = {
    "bert": ROOT / "adapters" / "encoders" / "bert",
    "roberta": ROOT / "adapters" / "encoders" / "roberta",
    "xlm_roberta": ROOT / "huggingface" / "xlm_roberta",
    "distilbert": ROOT / "huggingface" / "distilbert_bare",
    "electra": ROOT / "huggingface" / "electra",
    "mpnet": ROOT / "huggingface" / "mpnet",
    "deberta": ROOT / "huggingface" / "deberta",
    "modernbert": ROOT / "huggingface" / "modernbert",
}


def edit(path, key, value):
    """Sets a value in a JSON file, given its dotted key."""
    config = json.loads(path.read_text())
    inner = config
    *keys, last = key.split(".")
    for one in keys:
        inner = inner[one]
    inner[last] = value
    path.write_text(json.dumps(config))


def encoder(case):
    """Returns a fresh `Encoder` for a case's adapter."""
    name = case.partition("/")[2]
    kind = next(k for k in _ENCODERS if name.startswith(k))
    return load_encoder(_ENCODERS[kind], with_tokenizer=False)[0]


def inputs(model, expected):
    """Returns a case's inputs, with segments where the model takes them.

    Args:
        model: `AdapterModel`.
        expected: Dict of a case's inputs and output.
    """
    found = {
        name.removeprefix("input/"): value
        for name, value in expected.items()
        if name.startswith("input/")
    }
    if not model.encoder_info.takes_segments:
        found.pop("segment_ids", None)
    elif "segment_ids" not in found:
        found["segment_ids"] = 0 * found["padding_mask"]
    return found


def output_of(model, given):
    """Returns logits, at all positions for masked tokens, or vectors."""
    is_masked = isinstance(model.head, MaskedLM)
    if model.head is not None and not is_masked:
        return model(given)
    vectors = model.encoder(given)["sequence_output"]
    if not is_masked:
        return vectors
    return model.head_layer.logits(vectors, model.encoder.token_embeddings)


def answer(model, expected):
    """Returns the outputs of a model and of its library, without padding.

    Args:
        model: `AdapterModel`.
        expected: Dict of a case's inputs and output.
    """
    mask, wanted = expected["input/padding_mask"], expected["output"]
    output = output_of(model, inputs(model, expected)).numpy()
    # AdapterHub's output includes a prompt's tokens too.
    wanted = (
        wanted[:, wanted.shape[1] - output.shape[1] :]
        if (wanted.ndim == 3)
        else wanted
    )
    if output.ndim == 3:
        output, wanted = output * mask[..., None], wanted * mask[..., None]
    return output.reshape(-1), wanted.reshape(-1)
