"""The head for masked tokens equals PyTorch's, and its metrics are means."""

import pathlib

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file

from tests.fixtures import huggingface_folders
import tf_adapters
from tf_adapters import masked_lm_weights
from tf_adapters.data.encoded import IGNORED

_PATH = pathlib.Path(__file__).parents[1] / "fixtures" / "masked_lm"
NAMES = ("bert", "distilbert", "electra", "roberta")


def _model(folder, method=None):
    encoder, tokenizer = tf_adapters.load_encoder(str(folder))
    head = tf_adapters.heads.MaskedLM.of(encoder)
    method = method or tf_adapters.methods.HeadOnly()
    return tf_adapters.adapt(encoder, method, head), tokenizer


def _log_softmax(logits):
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


@pytest.mark.parametrize("name", NAMES)
def test_likelihoods_are_those_of_pytorch(name):
    model, _ = _model(_PATH / name)
    assert masked_lm_weights.load(model, _PATH / name)
    arrays = load_file(_PATH / f"{name}.expected.safetensors")
    logits = arrays.pop("logits").astype("float64")
    positions = np.array([[1, 3, 10], [6, 2, 0], [1, 0, 0]], "int32")
    ids = np.array([[5, 9, 7], [12, 30, IGNORED], [8, IGNORED, IGNORED]])
    found = keras.ops.convert_to_numpy(
        model(
            {
                **arrays,
                "masked_positions": positions,
                "masked_ids": ids.astype("int32"),
            }
        )
    )
    rows = np.arange(3)[:, None]
    expected = _log_softmax(logits)[rows, positions, np.maximum(ids, 0)]
    there = ids != IGNORED
    # Log-likelihoods here are of the order of 10.
    np.testing.assert_allclose(
        found[..., 0][there], expected[there], atol=1e-5, rtol=2e-6
    )
    best = logits[rows, positions].argmax(axis=-1)
    np.testing.assert_array_equal(found[..., 1][there], (best == ids)[there])
    assert (found[~there] == IGNORED).all()


def test_a_checkpoint_without_the_head_says_so():
    folder = huggingface_folders.folder("bert")
    model, _ = _model(folder)
    assert not masked_lm_weights.load(model, folder)
    assert not masked_lm_weights.load(model, "minilm")


def test_loss_and_metrics_are_over_hidden_tokens():
    head = tf_adapters.heads.MaskedLM(100, 8)
    outputs = np.array(
        [[[-1.0, 1], [-3.0, 0]], [[-2.0, 0], [IGNORED, IGNORED]]], "float32"
    )
    targets = np.array([[5, 6], [7, IGNORED]])
    losses = keras.ops.convert_to_numpy(head.loss(targets, outputs))
    np.testing.assert_allclose(losses, [4.0, 2.0])
    values = head.evaluate(
        ("log_likelihood", "masked_accuracy"), list(outputs), None, None
    )
    assert values == pytest.approx(
        {"log_likelihood": -2.0, "masked_accuracy": 1 / 3}
    )
    assert head.decode(list(outputs), None) == [
        {"log_likelihood": -2.0},
        {"log_likelihood": -2.0},
    ]


@pytest.mark.parametrize("name", ["bert", "roberta", "xlm_roberta"])
def test_rows_become_texts_with_counts_of_hidden_tokens(name):
    folder = (
        huggingface_folders.folder(name)
        if name == "xlm_roberta"
        else _PATH / name
    )
    model, tokenizer = _model(folder)
    packer = tf_adapters.TextPacker(tokenizer, 16)
    rows = [{"text": "the film"}, {"text": "water " * 30}]
    head = tf_adapters.heads.MaskedLM.of(model.encoder_info, whole_words=True)
    encoded = head.encode(rows, ("text",), packer)
    inside = [len(ids) - 2 for ids in encoded.token_ids]
    assert inside[1] == 14
    expected = [max(1, round(0.15 * count)) for count in inside]
    assert encoded.counts.tolist() == expected
    continues = encoded.masking.continues
    size = model.encoder_info.backbone.vocabulary_size
    assert continues.shape == (size,) and continues.any()
    assert not continues.all()
    assert encoded.masking.mask_id == tokenizer.mask_token_id
