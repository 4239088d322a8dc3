"""Tests reading of TensorFlow Datasets, and errors without them."""

import re
import types

import numpy as np
import pytest

from tf_adapters.common import network
from tf_adapters.common.errors import DataError
from tf_adapters.data.rows import load
from tf_adapters.data.rows import tfds_rows
from tf_adapters.data.rows.sources import find_source
from tf_adapters.tasks import get
from tf_adapters.tasks.task import Task


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Makes small sets with TensorFlow Datasets itself.

    The class names of `sci_tail` are in another order than the task's.
    """
    tf = pytest.importorskip("tensorflow")
    tfds = pytest.importorskip("tensorflow_datasets")
    folder = tmp_path_factory.mktemp("tfds")
    text = tfds.features.Text()

    def store(name, version, names, *splits):
        label = tfds.features.ClassLabel(names=names)
        tfds.dataset_builders.store_as_tfds_dataset(
            name=name,
            version=version,
            features=tfds.features.FeaturesDict(
                {"premise": text, "hypothesis": text, "label": label}
            ),
            split_datasets={
                split: tf.data.Dataset.from_tensor_slices(columns)
                for split, columns in splits
            },
            data_dir=str(folder),
            disable_shuffling=True,
        )

    train = {
        "premise": ["Ice melts.", "Élan.", "c"],
        "hypothesis": ["It warms.", "e", "f"],
        "label": [0, 1, 0],
    }
    test = {"premise": ["g"], "hypothesis": ["h"], "label": [-1]}
    for version in ("1.0.0", "1.9.0"):
        names = ["entails", "neutral"]
        store(
            "sci_tail", version, names, ("train", {**train, "label": [0] * 3})
        )
    store("sci_tail", "1.10.0", names[::-1], ("train", train), ("test", test))
    return folder


@pytest.fixture
def no_network(monkeypatch):
    monkeypatch.setattr(network, "answers", lambda *hosts: False)


def test_prepared_sets_are_read_without_a_network(prepared, monkeypatch):
    def fail(*hosts):
        pytest.fail("asked for a network")

    monkeypatch.setattr(network, "answers", fail)
    expected = [
        {"premise": "Ice melts.", "hypothesis": "It warms.", "label": 1},
        {"premise": "Élan.", "hypothesis": "e", "label": 0},
        {"premise": "c", "hypothesis": "f", "label": 1},
    ]
    task = get("scitail")
    assert load.load_split(task, "train", prepared) == expected
    monkeypatch.setenv("TFDS_DATA_DIR", str(prepared))
    assert load.load_split(task, "train") == expected
    (test,) = load.load_split(task, "test", prepared)
    assert test["label"] is None


def test_the_newest_version_is_taken_by_number(prepared):
    path = tfds_rows.find_prepared(get("scitail"), prepared)
    assert path.name == "1.10.0"
    assert tfds_rows.find_prepared(get("rte"), prepared) is None


def test_local_files_come_before_prepared_ones(prepared, tmp_path):
    (tmp_path / "scitail").mkdir()
    (tmp_path / "scitail/train.tsv").write_text(
        "premise\thypothesis\tlabel\na\tb\tneutral\n"
    )
    (tmp_path / "sci_tail").symlink_to(prepared / "sci_tail")
    assert len(load.load_split(get("scitail"), "train", tmp_path)) == 1


def test_a_split_without_rows_is_named():
    tf = pytest.importorskip("tensorflow")
    builder = types.SimpleNamespace(
        info=types.SimpleNamespace(features={"label": None}),
        as_dataset=lambda split, shuffle_files: tf.data.Dataset.range(0),
    )
    with pytest.raises(DataError, match="sci_tail, split train holds no rows"):
        tfds_rows._read(get("scitail"), "train", builder)


def test_a_split_of_a_prepared_set_is_there(prepared):
    assert find_source(get("scitail"), "train", prepared).is_there
    assert not find_source(get("rte"), "train", prepared).is_there


def test_without_a_network_one_sentence_says_the_ways_out(
    no_network, monkeypatch, tmp_path
):
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    with pytest.raises(DataError) as error:
        load.load_split(get("mnli"), "train")
    message = str(error.value)
    for part in (
        "Task `mnli`",
        "`glue/mnli`",
        str(tmp_path),
        "--data_dir=<folder>",
        "<folder>/mnli/{train,dev,test}.jsonl",
        "<folder>/MNLI/train.tsv",
        "tfds.load('glue/mnli'",
        "TFDS_DATA_DIR",
    ):
        assert part in message
    assert "\n" not in message
    assert not re.search(r"\. [A-Z]", message)  # One sentence.


def test_a_failed_preparation_says_the_same(monkeypatch, tmp_path):
    tfds = pytest.importorskip("tensorflow_datasets")

    class Broken:
        def download_and_prepare(self):
            raise OSError("disk full")

    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    monkeypatch.setattr(network, "answers", lambda *hosts: True)
    monkeypatch.setattr(tfds, "builder", lambda source: Broken())
    with pytest.raises(DataError, match=r"\(OSError: disk full\).*--data_dir"):
        load.load_split(get("mnli"), "train")


def test_sentences_without_words_are_left_out(tmp_path, caplog):
    """Some treebanks are released without them."""
    tf = pytest.importorskip("tensorflow")
    tfds = pytest.importorskip("tensorflow_datasets")
    task = get("ud_pos")
    tags = tfds.features.Sequence(tfds.features.ClassLabel(names=task.labels))
    words = tfds.features.Sequence(tfds.features.Text())
    columns = {
        "tokens": tf.ragged.constant([["it", "rains"], [], ["yes"]]),
        "upos": tf.ragged.constant([[10, 15], [], [6]], tf.int64),
    }
    tfds.dataset_builders.store_as_tfds_dataset(
        name="xtreme_pos",
        version="1.0.0",
        config="xtreme_pos_en",
        features=tfds.features.FeaturesDict({"tokens": words, "upos": tags}),
        split_datasets={"dev": tf.data.Dataset.from_tensor_slices(columns)},
        data_dir=str(tmp_path),
        disable_shuffling=True,
    )
    rows = load.load_split(task, "validation", tmp_path)
    assert [row["tokens"] for row in rows] == [["it", "rains"], ["yes"]]
    assert [row["label"] for row in rows] == [[10, 15], [6]]
    assert "1 sentences without words are left out" in caplog.text


@pytest.mark.parametrize(
    ("index", "place"),
    [(np.int32(3), 3), ({"paragraph": 1}, 7), (b"test-12", 7)],
    ids=["a number", "a dict", "a text"],
)
def test_only_a_number_is_a_place_in_the_official_file(index, place):
    assert tfds_rows._place({"idx": index}, True, 7) == place


STARS = ("1", "2", "3")


@pytest.mark.parametrize(
    ("head", "value", "names", "expected"),
    [
        ("classification", np.int64(1), None, "2"),
        ("classification", np.int64(1), STARS[::-1], "2"),
        ("classification", np.int64(0), STARS[::-1], "3"),
        ("classification", np.int64(-1), None, None),
        ("classification", np.bool_(True), None, "2"),
        ("classification", b"2", None, "2"),
        ("tagging", np.array([0, -1, 2]), STARS, ["1", None, "3"]),
        ("multilabel", np.array([0, 2]), None, ["1", "3"]),
        ("multilabel", np.array([b"1", b"3"]), None, ["1", "3"]),
        ("regression", np.float32(2.5), None, 2.5),
    ],
)
def test_a_number_of_a_prepared_set_is_an_id(head, value, names, expected):
    labels = () if head == "regression" else STARS
    task = Task("t", ("text",), labels=labels, head=head)
    assert tfds_rows._label(value, names, task) == expected


def test_an_id_without_a_class_is_refused():
    task = Task("t", ("text",), labels=STARS)
    with pytest.raises(DataError, match="class id 3, .* from 0 to 2"):
        tfds_rows._label(np.int64(3), None, task)
