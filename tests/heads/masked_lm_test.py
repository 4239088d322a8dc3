"""Compares the head for masked tokens with PyTorch's, and tests its metrics."""

import dataclasses
import pathlib
import shutil

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file
from safetensors.numpy import save_file
import tensorflow as tf
import tokenizers
import transformers

from tests import tiny
from tests.fixtures import huggingface_folders
from tests.references import encoder_numpy
from tests.references import heads_numpy as reference
import tf_adapters
from tf_adapters.common.errors import UserError
from tf_adapters.config import settings as config_lib
from tf_adapters.data.batches import pipeline
from tf_adapters.data.examples import IGNORED
from tf_adapters.encoders import downloads
from tf_adapters.encoders import masked_lm_heads
from tf_adapters.training.trainer import Trainer

pytestmark = pytest.mark.integration

_PATH = pathlib.Path(__file__).parents[1] / "fixtures" / "masked_lm"
NAMES = (
    "albert",
    "bert",
    "deberta",
    "distilbert",
    "electra",
    "modernbert",
    "mpnet",
    "roberta",
    "xlm_roberta",
)


def _model(folder, method=None):
    encoder, tokenizer = tf_adapters.load_encoder(str(folder))
    head = tf_adapters.heads.MaskedLM.for_encoder(encoder)
    method = method or tf_adapters.methods.HeadOnly()
    return tf_adapters.adapt(encoder, method, head), tokenizer


def _log_softmax(logits):
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


@pytest.mark.parametrize("name", NAMES)
def test_likelihoods_are_those_of_pytorch(name):
    model, _ = _model(_PATH / name)
    assert masked_lm_heads.load_masked_lm_head(model, _PATH / name)
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


@pytest.mark.parametrize("name", NAMES)
def test_the_likeliest_tokens_are_those_of_pytorch(name):
    model, _ = _model(_PATH / name)
    assert masked_lm_heads.load_masked_lm_head(model, _PATH / name)
    arrays = load_file(_PATH / f"{name}.expected.safetensors")
    logits = arrays.pop("logits").astype("float64")
    positions = np.array([[1, 3, 10], [2, 6, IGNORED], [1] + [IGNORED] * 2])
    found = keras.ops.convert_to_numpy(
        model({**arrays, "masked_positions": positions.astype("int32")})
    )
    assert found.shape == (3, 3, 5, 2)
    there = positions != IGNORED
    assert (found[~there] == IGNORED).all()
    for (row, place), best in zip(
        np.argwhere(there), found[there], strict=True
    ):
        ids, probabilities = reference.likeliest(
            logits[row, positions[row, place]], 5
        )
        assert best[:, 1].tolist() == ids
        np.testing.assert_allclose(best[:, 0], probabilities, atol=1e-5)


TEXTS = [
    "the {} is water",
    "no mask",
    "",
    "{}{}, the cafe {}",
    "un{}ed film",
    "the film " * 20 + "{}",  # Beyond the longest input.
    "{}" * 20,  # As many of them as there is room for.
]


def _predicted(model, tokenizer, rows, fields, max_length, **data):
    """Returns the predictions of `--mode=predict`."""
    config = config_lib.Config(
        task="",
        method=None,
        data=config_lib.DataConfig(max_length=max_length, **data),
        train=config_lib.TrainConfig(eval_batch_size=3),
    )
    packer = tf_adapters.TextPacker(tokenizer, max_length)
    encoded = model.head.encode(rows, fields, packer, labeled=False)
    examples = pipeline.to_tensors(encoded)
    trainer = Trainer(
        model,
        tf.distribute.get_strategy(),
        config.train,
        config.data,
        config.seed,
        (),
    )
    return model.head.decode(trainer.predict(examples), examples.source)


def _by_hand(model, original, text, max_length):
    """Returns tokens and probabilities of a text's masks, one by one.

    Tokenized by transformers, computed in NumPy.
    """
    info = model.encoder_info
    ids = original(text, truncation=True, max_length=max_length)["input_ids"]
    ids = np.array([ids])
    features = {"token_ids": ids, "padding_mask": np.ones_like(ids)}
    features["segment_ids"] = np.zeros_like(ids)
    weights = {v.path: v.numpy() for v in info.backbone.weights}
    *_, states = encoder_numpy.encode(
        weights,
        features,
        info.backbone.num_heads,
        info.activation,
        info.layer_norm_epsilon,
    )
    own = {v.name: np.float64(v.numpy()) for v in model.head_layer.weights}
    return [
        reference.likeliest(
            reference.masked_lm(
                states[0, place],
                own,
                info.backbone.token_embedding.embeddings.numpy(),
                encoder_numpy.ACTIVATIONS[info.activation],
                info.layer_norm_epsilon,
            ),
            5,
        )
        for place in np.flatnonzero(ids[0] == original.mask_token_id)
    ]


@pytest.mark.parametrize(
    ("name", "batching"),
    [("bert", "grouped"), ("bert", "fixed"), ("roberta", "grouped")],
)
def test_masks_of_texts_are_predicted(name, batching):
    model, tokenizer = _model(_PATH / name)
    assert masked_lm_heads.load_masked_lm_head(model, _PATH / name)
    original = {
        "bert": transformers.BertTokenizer,
        "roberta": transformers.RobertaTokenizer,
    }[name].from_pretrained(str(_PATH / name))
    mask = tokenizers.AddedToken(original.mask_token, lstrip=True, special=True)
    original.add_special_tokens({"mask_token": mask})
    texts = [text.replace("{}", original.mask_token) for text in TEXTS]
    predicted = _predicted(
        model,
        tokenizer,
        [{"text": text} for text in texts],
        ("text",),
        16,
        batching=batching,
    )
    for text, answer in zip(texts, predicted, strict=True):
        expected = _by_hand(model, original, text, 16)
        masks = answer["masks"]
        assert len(masks) == text.count(original.mask_token)
        # The masks that were cut are the last ones.
        assert masks[len(expected) :] == [[]] * (len(masks) - len(expected))
        for best, (ids, probabilities) in zip(masks, expected, strict=False):
            assert [b["token"] for b in best] == [
                original.decode([i]) for i in ids
            ]
            np.testing.assert_allclose(
                [b["probability"] for b in best], probabilities, atol=1e-5
            )
    assert [len(a["masks"]) for a in predicted] == [1, 0, 0, 3, 1, 1, 20]
    assert sum(map(bool, predicted[-1]["masks"])) == 14


@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_a_pair_of_which_both_texts_are_cut(name):
    model, tokenizer = _model(_PATH / name)
    mask = tf_adapters.TextPacker(tokenizer, 16).mask
    short = f"a {mask} b"
    long = f"{mask} " + "a " * 30 + mask
    rows = [{"a": x, "b": y} for x in (short, long) for y in (short, long)]
    rows.append({"a": "", "b": f"{mask}"})
    predicted = _predicted(model, tokenizer, rows, ("a", "b"), 20)
    assert [[bool(m) for m in row["masks"]] for row in predicted] == [
        [True, True],
        [True, True, False],
        [True, False, True],
        [True, False, True, False],
        [True],
    ]


def test_a_checkpoint_without_the_head_says_so():
    folder = huggingface_folders.folder("bert")
    model, _ = _model(folder)
    assert not masked_lm_heads.load_masked_lm_head(model, folder)
    assert not masked_lm_heads.load_masked_lm_head(model, "minilm")


@pytest.mark.parametrize("tied", [True, False])
def test_an_output_matrix_of_its_own_is_refused(tied, tmp_path):
    shutil.copytree(_PATH / "bert", tmp_path, dirs_exist_ok=True)
    model, _ = _model(tmp_path)
    matrix = np.array(model.encoder_info.backbone.token_embedding.embeddings)
    tensors = load_file(tmp_path / "model.safetensors")
    matrix[3, 1] += 0.0 if tied else 1.0
    tensors["cls.predictions.decoder.weight"] = matrix
    save_file(tensors, tmp_path / "model.safetensors")
    if tied:
        assert masked_lm_heads.load_masked_lm_head(model, tmp_path)
        return
    with pytest.raises(ValueError, match="an output matrix of their own"):
        masked_lm_heads.load_masked_lm_head(model, tmp_path)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_embeddings_stored_as_the_output_matrix_only(tmp_path, dtype):
    shutil.copytree(_PATH / "roberta", tmp_path, dirs_exist_ok=True)
    tensors = load_file(tmp_path / "model.safetensors")
    name = "roberta.embeddings.word_embeddings.weight"
    tensors["lm_head.decoder.weight"] = tensors.pop(name)
    save_file(tensors, tmp_path / "model.safetensors")
    encoder, expected = (
        tf_adapters.load_encoder(path, dtype, with_tokenizer=False)[0]
        for path in (tmp_path, _PATH / "roberta")
    )
    assert encoder.fingerprint == expected.fingerprint
    head = tf_adapters.heads.MaskedLM.for_encoder(encoder)
    model = tf_adapters.adapt(encoder, tf_adapters.methods.HeadOnly(), head)
    assert masked_lm_heads.load_masked_lm_head(model, tmp_path)


@pytest.mark.parametrize(
    ("name", "activation"), [("roberta", "gelu"), ("bert", "relu")]
)
def test_the_heads_activation_where_the_encoder_has_another(name, activation):
    encoder, _ = tf_adapters.load_encoder(str(_PATH / name))
    encoder = dataclasses.replace(encoder, activation="relu")
    head = tf_adapters.heads.MaskedLM.for_encoder(encoder)
    assert head.activation == activation


def test_the_head_of_a_downloaded_checkpoint(monkeypatch):
    monkeypatch.setattr(
        downloads, "huggingface_folder", lambda name: _PATH / name[5:]
    )
    model, _ = _model(_PATH / "bert")
    assert masked_lm_heads.load_masked_lm_head(model, "hf://bert")


def test_the_head_of_an_encoder_takes_settings_but_no_sizes():
    encoder = tiny.encoder(num_blocks=1)
    for_encoder = tf_adapters.heads.MaskedLM.for_encoder
    head = for_encoder(encoder, activation="relu", seed=2)
    expected = dataclasses.replace(
        for_encoder(encoder), activation="relu", seed=2
    )
    assert head == expected != for_encoder(encoder)
    for name in ("vocabulary_size", "embedding_width"):
        with pytest.raises(UserError, match=f"^`{name}` .* Received: .*=5"):
            for_encoder(encoder, **{name: 5})


def test_loss_and_metrics_are_over_hidden_tokens():
    head = tf_adapters.heads.MaskedLM(100, 8)
    outputs = np.array(
        [[[-1.0, 1], [-3.0, 0]], [[-2.0, 0], [IGNORED, IGNORED]]], "float32"
    )
    targets = np.array([[5, 6], [7, IGNORED]])
    losses = keras.ops.convert_to_numpy(head.loss(targets, outputs))
    np.testing.assert_allclose(losses, [4.0, 2.0])
    names = ("log_likelihood", "masked_accuracy", "loss")
    assert head.evaluate(names, list(outputs), None, None) == pytest.approx(
        {"log_likelihood": -2.0, "masked_accuracy": 1 / 3, "loss": 2.0}
    )


@pytest.mark.parametrize(
    "option", [{"mask_share": 0.0}, {"mask_share": 1.5}, {"num_best": 0}]
)
def test_shares_and_counts_out_of_range_are_refused(option):
    with pytest.raises(ValueError, match="`mask_share` is a share above 0"):
        tf_adapters.heads.MaskedLM(100, 8, **option)


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
    head = tf_adapters.heads.MaskedLM.for_encoder(
        model.encoder_info, whole_words=True
    )
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
