"""Choices as files hold them, and the errors for malformed ones."""

import csv

import pytest

from tf_adapters.common.errors import DataError
from tf_adapters.data.rows import load
from tf_adapters.data.rows.table import Table
from tf_adapters.data.rows.typed_rows import typed_rows
from tf_adapters.tasks import get

COSMOS, WINOGRANDE = get("cosmosqa"), get("winogrande")


def _typed(task, row, **options):
    (typed,) = typed_rows(Table("a", [(1, row)]), task, **options)
    return typed


@pytest.mark.parametrize(
    "choices",
    [
        {"choices": ["x", "y"]},
        {"choices": '["x", "y"]'},
        {"option1": "x", "option2": "y"},
    ],
)
@pytest.mark.parametrize("label", [1, "1"])
def test_a_list_has_several_forms(choices, label):
    row = {"context": "a _ b", **choices, "label": label}
    expected = {"sentence": "a _ b", "choices": ["x", "y"], "label": 1}
    assert _typed(WINOGRANDE, row) == expected


def test_one_other_field_may_hold_the_whole_list():
    row = {"context": "a", "endings": ["x", "y", "z"], "label": 2}
    assert _typed(get("hellaswag"), row)["choices"] == ["x", "y", "z"]


@pytest.mark.parametrize("label", [None, "", -1, "-1"])
def test_no_label(label):
    row = {"sentence": "a", "choices": ["x"], "label": label}
    assert _typed(WINOGRANDE, row, labels="optional")["label"] is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"label": 2}, "from 0 to 1, received 2"),
        ({"label": "x"}, "from 0 to 1, received 'x'"),
        ({"label": True}, "received True"),
        ({"label": None}, "field `label` has no label"),
        ({"choices": []}, "list of texts, received"),
        ({"choices": ["x", 3]}, "list of texts, received"),
        ({"choices": "x, y"}, "as JSON, for example"),
        ({"choices": None}, "field `choices` is missing"),
    ],
)
def test_malformed_rows_are_explained(changes, message):
    row = {"sentence": "a", "choices": ["x", "y"], "label": 0, **changes}
    with pytest.raises(DataError, match=message):
        _typed(WINOGRANDE, row)


def test_columns_of_a_table(tmp_path):
    fields = ["context", "question", *COSMOS.choice_fields, "label"]
    (tmp_path / "cosmosqa").mkdir()
    with (tmp_path / "cosmosqa" / "train.csv").open("w") as file:
        writer = csv.writer(file)
        writer.writerows([fields, ["c", "q", "a", "b", "e", "d", "3"]])
    (row,) = load.load_split(COSMOS, "train", tmp_path)
    assert row["choices"] == ["a", "b", "e", "d"] and row["label"] == 3


def test_prepared_sets_have_columns_or_a_list(tmp_path):
    tf = pytest.importorskip("tensorflow")
    tfds = pytest.importorskip("tensorflow_datasets")
    text, number = tfds.features.Text(), tfds.features.Scalar(tf.int32)
    several = {
        "winogrande": (
            {
                "sentence": text,
                "option1": text,
                "option2": text,
                "label": tfds.features.ClassLabel(names=["1", "2"]),
            },
            {"sentence": ["a _"], "option1": ["x"], "option2": ["é"]},
            "train_xl",
        ),
        "hellaswag": (
            {
                "context": text,
                "endings": tfds.features.Sequence(text),
                "label": number,
            },
            {"context": ["a _"], "endings": [["x", "é"]]},
            "train",
        ),
    }
    for name, (features, columns, split) in several.items():
        tfds.dataset_builders.store_as_tfds_dataset(
            name=name,
            version="1.0.0",
            features=tfds.features.FeaturesDict(features),
            split_datasets={
                split: tf.data.Dataset.from_tensor_slices(
                    {**columns, "label": [1]}
                )
            },
            data_dir=str(tmp_path),
        )
        (row,) = load.load_split(get(name), "train", tmp_path)
        assert row["choices"] == ["x", "é"] and row["label"] == 1


def test_words_end_at_ascii_blanks_only():
    """As in exported taggers, a no-break space is part of its word."""
    row = {"tokens": "10\u00a0000  Euro\t", "tags": "O O"}
    typed = _typed(get("wikiann"), row)
    assert typed["tokens"] == ["10\u00a0000", "Euro"]
    assert typed["label"] == [0, 0]


def test_an_empty_choice_is_none():
    row = {"context": "a", "endings": ["x", "", "z"], "label": 2}
    with pytest.raises(DataError, match="empty text at position 1"):
        _typed(get("hellaswag"), row)
