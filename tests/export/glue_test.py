"""Tests GLUE submission files: names, labels, order and counts."""

import numpy as np
import pytest
import tensorflow as tf

from tf_adapters import tasks
from tf_adapters.config.resolve import merge
from tf_adapters.config.resolve import resolve_config
from tf_adapters.config.resolve import to_dict
from tf_adapters.export import glue
from tf_adapters.runs import experiment

pytestmark = pytest.mark.integration

# Lines of each file of the sample submission, its header not counted.
OFFICIAL = {
    "AX.tsv": 1104,
    "CoLA.tsv": 1063,
    "MNLI-m.tsv": 9796,
    "MNLI-mm.tsv": 9847,
    "MRPC.tsv": 1725,
    "QNLI.tsv": 5463,
    "QQP.tsv": 390965,
    "RTE.tsv": 3000,
    "SST-2.tsv": 1821,
    "STS-B.tsv": 1379,
    "WNLI.tsv": 146,
}
# The label of the last class of each task, written by hand.
LAST_WORD = {
    "cola": ("acceptable", "1"),
    "sst2": ("positive", "1"),
    "mrpc": ("equivalent", "1"),
    "qqp": ("duplicate", "1"),
    "mnli": ("contradiction", "contradiction"),
    "ax": ("contradiction", "contradiction"),
    "qnli": ("not_entailment", "not_entailment"),
    "rte": ("not_entailment", "not_entailment"),
    "wnli": ("entailment", "1"),
}


def test_files_are_those_of_the_sample_submission():
    files = glue.FILES.values()
    assert {file.name: file.num_rows for file in files} == OFFICIAL


@pytest.mark.parametrize("name", LAST_WORD)
def test_classes_are_written_in_the_servers_words(name, tmp_path):
    file = glue.FILES[name, "test"]
    labels = tasks.get("mnli" if name == "ax" else name).labels
    label, word = LAST_WORD[name]
    predictions = [{"label": labels[0]}] * file.num_rows
    predictions[2] = {"label": label}
    path = glue.write_submission(file, predictions, tmp_path / "new")
    lines = path.read_text().splitlines()
    assert lines[0] == "index\tprediction"
    assert lines[3] == f"2\t{word}"
    first_words = {line.split("\t")[1] for line in lines[1:3] + lines[4:]}
    assert first_words == {labels[0] if word == label else "0"}
    indices = [int(line.split("\t")[0]) for line in lines[1:]]
    assert indices == list(range(file.num_rows))


def test_scores_are_cut_to_the_range_of_the_task(tmp_path):
    file = glue.FILES["stsb", "test"]
    predictions = [{"score": 2.34567891}] * file.num_rows
    predictions[0], predictions[1] = {"score": -0.2}, {"score": 5.3}
    lines = (
        glue.write_submission(file, predictions, tmp_path)
        .read_text()
        .splitlines()
    )
    assert lines[1:4] == ["0\t0.000000", "1\t5.000000", "2\t2.345679"]


@pytest.mark.parametrize(
    ("name", "prediction", "message"),
    [
        ("wnli", {"label": "neutral"}, "row 5.*Received: .*neutral"),
        ("wnli", {"score": 1.0}, "expected a `label`"),
        ("stsb", {"score": float("nan")}, "row 5.*finite `score`"),
        ("stsb", {"label": "1"}, "finite `score`"),
    ],
)
def test_other_predictions_are_refused(name, prediction, message, tmp_path):
    file = glue.FILES[name, "test"]
    good = {"label": "entailment"} if name == "wnli" else {"score": 1.0}
    predictions = [good] * file.num_rows
    predictions[5] = prediction
    with pytest.raises(glue.SubmissionError, match=message):
        glue.write_submission(file, predictions, tmp_path)
    assert not list(tmp_path.iterdir())


def test_another_number_of_rows_is_refused(tmp_path):
    predictions = [{"label": "entailment"}] * 277
    with pytest.raises(glue.SubmissionError, match="3,000 .* Received: 277"):
        glue.write_submission(glue.FILES["rte", "test"], predictions, tmp_path)


def _write_tsv(path, columns, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ["\t".join(map(str, row)) for row in [columns, *rows]]
    path.write_text("\n".join(lines) + "\n")


def _with_data(config, data_dir):
    layer = {"data": {"data_dir": str(data_dir)}}
    return resolve_config(merge(to_dict(config), layer))


def test_a_run_answers_its_test_set(run_folder, tmp_path):
    folder, model, packer, config = run_folder
    words = "the film is not good bad dull and but was very plot it".split()
    generator = np.random.default_rng(0)
    texts = [
        tuple(
            " ".join(generator.choice(words, size)) for size in (i % 5 + 1, 4)
        )
        for i in range(146)
    ]
    _write_tsv(
        tmp_path / "data/WNLI/test.tsv",
        ["index", "sentence1", "sentence2"],
        [(i, *pair) for i, pair in enumerate(texts)],
    )
    config = _with_data(config, tmp_path / "data")
    (path,) = glue.export_submission(config, folder, tmp_path / "out")
    outputs = model(packer(*zip(*texts, strict=True)), training=False)
    expected = np.argmax(outputs, axis=1)
    assert 0 < expected.mean() < 1
    lines = path.read_text().splitlines()[1:]
    assert lines == [f"{i}\t{label}" for i, label in enumerate(expected)]


def test_a_short_test_set_is_refused_before_predicting(run_folder, tmp_path):
    folder, _, _, config = run_folder
    _write_tsv(
        tmp_path / "WNLI/test.tsv",
        ["index", "sentence1", "sentence2"],
        [(0, "a", "b")],
    )
    with pytest.raises(glue.SubmissionError, match="146 .* Received: 1"):
        glue.export_submission(
            _with_data(config, tmp_path), folder, tmp_path / "out"
        )
    assert not (tmp_path / "out").exists()


def test_a_file_in_place_of_the_folder_is_refused_before_predicting(
    run_folder, tmp_path, monkeypatch
):
    folder, _, _, config = run_folder
    _write_tsv(
        tmp_path / "WNLI/test.tsv",
        ["index", "sentence1", "sentence2"],
        [(i, "a", "b") for i in range(146)],
    )
    monkeypatch.setattr(experiment, "Experiment", None)
    (tmp_path / "out").touch()
    with pytest.raises(glue.SubmissionError, match="Expected a folder"):
        glue.export_submission(
            _with_data(config, tmp_path), folder, tmp_path / "out"
        )


def test_tasks_that_glue_does_not_have_are_refused(run_folder, tmp_path):
    folder, _, _, config = run_folder
    config = resolve_config(merge(to_dict(config), {"task": "demo_sentiment"}))
    with pytest.raises(glue.SubmissionError, match="task=demo_sentiment"):
        glue.export_submission(config, folder, tmp_path)


def test_a_model_of_mnli_answers_three_sets(tmp_path):
    columns = ["index", "sentence1", "sentence2"]
    for place, text in (
        ("MNLI/test_matched.tsv", "matched"),
        ("MNLI/test_mismatched.tsv", "mismatched"),
        ("diagnostic/diagnostic.tsv", "diagnostic"),
    ):
        _write_tsv(tmp_path / place, columns, [(0, text, "b")])
    keys = glue._test_sets("mnli", tmp_path)
    assert [
        (
            glue.FILES[key].name,
            glue.load_glue_rows(*key, tmp_path)[0]["premise"],
        )
        for key in keys
    ] == [
        ("MNLI-m.tsv", "matched"),
        ("MNLI-mm.tsv", "mismatched"),
        ("AX.tsv", "diagnostic"),
    ]
    (tmp_path / "diagnostic/diagnostic.tsv").unlink()
    (tmp_path / "MNLI/test_mismatched.tsv").unlink()
    assert glue._test_sets("mnli", tmp_path) == [("mnli", "test")]


def test_shuffled_rows_of_tensorflow_datasets_are_put_in_order(
    tmp_path, monkeypatch
):
    tfds = pytest.importorskip("tensorflow_datasets")
    text = tfds.features.Text()
    places = [3, 0, 4, 1, 2]
    tfds.dataset_builders.store_as_tfds_dataset(
        name="glue",
        config="rte",
        version="2.0.0",
        features=tfds.features.FeaturesDict(
            {
                "sentence1": text,
                "sentence2": text,
                "label": tfds.features.ClassLabel(
                    names=["entailment", "not_entailment"]
                ),
                "idx": np.int32,
            }
        ),
        split_datasets={
            "test": tf.data.Dataset.from_tensor_slices(
                {
                    "sentence1": [f"text {place}" for place in places],
                    "sentence2": ["b"] * 5,
                    "label": [-1] * 5,
                    "idx": np.array(places, np.int32),
                }
            )
        },
        data_dir=str(tmp_path),
        disable_shuffling=True,
    )
    expected = [f"text {place}" for place in range(5)]
    rows = glue.load_glue_rows("rte", "test", str(tmp_path))
    assert [row["sentence1"] for row in rows] == expected
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    rows = glue.load_glue_rows("rte", "test")
    assert [row["sentence1"] for row in rows] == expected
