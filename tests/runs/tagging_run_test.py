"""Tests tagging from files to files, from training to export."""

import json

import numpy as np
import pytest
import tensorflow as tf

from tests import commands

pytestmark = pytest.mark.integration

WORDS = {"the": "DET", "film": "NOUN", "is": "AUX", "good": "ADJ", "it": "PRON"}
SENTENCES = [
    ["the", "film", "is", "good"],
    ["it", "is", "the", "film"] * 6,  # Longer than an input.
    ["it", "is", "good"],
] * 6


def _conllu(sentences):
    return "".join(
        "".join(
            f"{i}\t{word}\t_\t{WORDS[word]}\t_\t_\t_\t_\t_\t_\n"
            for i, word in enumerate(words, 1)
        )
        + "\n"
        for words in sentences
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tagging")
    for path in ("en_x/train", "en_x/dev", "en_x/test", "de/test"):
        file = folder / "ud" / f"{path}.conllu"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(_conllu(SENTENCES[::-1] if "de" in path else SENTENCES))
    settings = {
        "task": "ud_pos",
        "encoder": commands.ENCODER,
        "method": "houlsby",
        "data": {
            "max_length": 16,
            "data_dir": str(folder),
            "eval_languages": ["all"],
        },
        "train": {"epochs": 12, "batch_size": 8, "learning_rate": 0.01},
    }
    assert commands.run(folder / "run", settings) == 0
    return folder


@pytest.mark.slow
def test_it_learns_and_transfers(folder, capsys):
    result = json.loads((folder / "run" / "result.json").read_text())
    assert result["validation"]["accuracy"] > 0.9
    assert result["examples"] == 12 * (6 + 12 + 6)  # Windows.
    transfer = result["transfer"]
    assert list(transfer["languages"]) == ["en", "de"]
    known = result["transfer_fingerprint"]
    assert known["en"] == result["data_fingerprint"]["test"] != known["de"]
    assert transfer["target"] == result["test"]["accuracy"]
    assert commands.run(folder / "run", mode="eval") == 0
    assert f"target     average    accuracy {transfer['target']:.4f}" in (
        capsys.readouterr().out
    )


@pytest.mark.slow
def test_predictions_and_the_export_agree(folder):
    rows = [{"tokens": words} for words in SENTENCES[:3]]
    options = {"input": commands.write_rows(folder / "new.jsonl", rows)}
    for name in ("out.jsonl", "out.conllu"):
        status = commands.run(
            folder / "run",
            mode="predict",
            output=str(folder / name),
            **options,
        )
        assert status == 0
    predicted = [
        row["tags"] for row in commands.read_rows(folder / "out.jsonl")
    ]
    assert [len(tags) for tags in predicted] == [4, 24, 3]
    lines = (folder / "out.conllu").read_text().split("\n")
    columns = [line.split("\t") for line in lines if line]
    assert [row[3] for row in columns] == [
        t for tags in predicted for t in tags
    ]
    assert commands.run(folder / "run", mode="export") == 0
    path = folder / "run" / "export" / "ud_pos" / "1"
    serve = tf.saved_model.load(str(path)).signatures["serving_default"]
    texts = [" ".join(words) for words in SENTENCES[:3]]
    answer = serve(text=tf.constant([texts[0], texts[2], "", texts[1]]))
    tags = [[t.decode() for t in row] for row in answer["tags"].numpy()]
    assert tags[0][:4] == predicted[0] and tags[1][:3] == predicted[2]
    assert not any(tags[2]) and not any(tags[0][4:])
    # In a graph a long sentence is cut: 16 tokens, 14 of them words'.
    assert all(tags[3][:14]) and not any(tags[3][14:])
    probabilities = answer["probabilities"].numpy()
    np.testing.assert_allclose(probabilities[0, :4].sum(-1), 1, atol=1e-5)
    assert not probabilities[0, 4:].any()
    assert answer["words"].numpy()[1, :3].tolist() == [b"it", b"is", b"good"]
