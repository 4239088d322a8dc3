"""Tokens on disk: the same batches, made once, whole or not at all."""

from concurrent import futures
import dataclasses
import json
import logging

import numpy as np
import pytest

from tests.fixtures import huggingface_folders
import tf_adapters
from tf_adapters import heads
from tf_adapters.common.errors import ConfigError
from tf_adapters.data.batches import pipeline
from tf_adapters.data.batches import token_cache

pytestmark = pytest.mark.integration

_TEXTS = [f"the film was {'very ' * i}good" for i in range(11)]
_ROWS = [
    {
        "a": text,
        "b": "a dull film",
        "words": text.split(),
        "choices": ["good", "a dull film", "bad"][: 1 + i % 3],
        "classes": i % 2,
        "number": i / 3,
        "place": 0,
        "tags": [j % 2 for j in range(len(text.split()))],
        "answers": [
            {"text": "good", "answer_start": text.index("good")},
        ],
    }
    for i, text in enumerate(_TEXTS)
]
_CASES = {
    "classification": (heads.Classification(("no", "yes")), "a b", "classes"),
    "regression": (heads.Regression(), "a", "number"),
    "choice": (heads.Choice(), "a choices", "place"),
    "tagging": (heads.Tagging(("x", "y")), "words", "tags"),
    "span": (heads.Span(), "b a", "answers"),
    "masked_lm": (None, "a", "classes"),
}


@pytest.fixture(scope="module")
def loaded():
    folder = huggingface_folders.folder("bert")
    return tf_adapters.load_encoder(str(folder))


@pytest.fixture
def packer(loaded):
    return tf_adapters.TextPacker(loaded[1], max_length=16)


def _case(name, loaded):
    head, fields, label = _CASES[name]
    if name == "masked_lm":
        head = heads.MaskedLM.for_encoder(loaded[0], whole_words=True)
    rows = [{**row, "label": row[label]} for row in _ROWS]
    return head, fields.split(), rows


def _batches(examples, **options):
    plan = pipeline.plan_training(examples.lengths, 4, 0, 0, "grouped")
    return list(pipeline.dataset(examples, plan, **options))


def _check_equal(examples, expected):
    found, wanted = _batches(examples), _batches(expected)
    assert len(found) == len(wanted) >= 3
    for batch, other in zip(found, wanted, strict=True):
        assert batch.keys() == other.keys()
        for name, value in other.items():
            assert batch[name].dtype == value.dtype
            np.testing.assert_array_equal(batch[name], value, err_msg=name)


@pytest.mark.parametrize("name", _CASES)
def test_batches_are_those_of_tokens_in_memory(
    name, loaded, packer, tmp_path, monkeypatch
):
    monkeypatch.setattr(token_cache, "_ROWS_AT_ONCE", 4)
    head, fields, rows = _case(name, loaded)
    encoded = head.encode(rows, fields, packer)
    expected = pipeline.to_examples(encoded, packer.special_tokens.pad)
    for _ in range(2):  # As written, and as found.
        examples = token_cache.examples(head, fields, packer, rows, tmp_path)
        _check_equal(examples, expected)
        # What was there is read, not made.
        monkeypatch.setattr(token_cache, "_write", None)


def _classification(loaded, packer, folder, rows=None, **changes):
    head, fields, own = _case("classification", loaded)
    head = dataclasses.replace(head, **changes)
    return token_cache.examples(head, fields, packer, rows or own, folder)


def _folders(path):
    return sorted(p for p in path.iterdir() if p.is_dir())


def test_what_decides_the_tokens_decides_the_folder(loaded, packer, tmp_path):
    rows = _case("classification", loaded)[2]
    shorter = tf_adapters.TextPacker(loaded[1], max_length=12)
    _, cased = tf_adapters.load_encoder(
        str(huggingface_folders.folder("roberta_bare"))
    )
    other = [{**rows[0], "a": "bad"}, *rows[1:]]
    for count, options in enumerate(
        [
            {},
            {"rows": other},
            {"packer": shorter},
            {"packer": tf_adapters.TextPacker(cased, max_length=16)},
            {"labels": ("a", "b")},
        ],
        start=1,
    ):
        for _ in range(2):
            _classification(
                loaded, **{"packer": packer, "folder": tmp_path} | options
            )
        assert len(_folders(tmp_path)) == count


def _flip_a_byte(folder):
    data = bytearray((folder / "token_ids").read_bytes())
    data[5] ^= 1
    (folder / "token_ids").write_bytes(data)


def _cut(folder):
    data = (folder / "token_ids").read_bytes()
    (folder / "token_ids").write_bytes(data[:-4])


@pytest.mark.parametrize(
    "damage",
    [
        _flip_a_byte,
        _cut,
        lambda folder: (folder / "lengths").unlink(),
        lambda folder: (folder / "contents.json").write_text("{"),
        lambda folder: (folder / "contents.json").write_text("[1]"),
        lambda folder: (folder / "contents.json").write_text('{"x": 1}'),
    ],
)
def test_damaged_caches_are_made_again(
    damage, loaded, packer, tmp_path, caplog
):
    expected = _batches(_classification(loaded, packer, tmp_path))
    (folder,) = _folders(tmp_path)
    damage(folder)
    with caplog.at_level(logging.WARNING):
        found = _batches(_classification(loaded, packer, tmp_path))
    assert "it is damaged" in caplog.text
    for batch, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(batch["token_ids"], other["token_ids"])
    assert _folders(tmp_path) == [folder]


def test_a_write_that_fails_leaves_nothing(
    loaded, packer, tmp_path, monkeypatch
):
    monkeypatch.setattr(token_cache, "_ROWS_AT_ONCE", 4)
    head, fields, rows = _case("classification", loaded)
    broken = [*rows[:-1], {**rows[-1], "label": "no"}]
    with pytest.raises(ValueError):
        token_cache.examples(head, fields, packer, broken, tmp_path)
    assert _folders(tmp_path) == []


def test_what_a_killed_process_left_goes(loaded, packer, tmp_path):
    _classification(loaded, packer, tmp_path)
    (folder,) = _folders(tmp_path)
    left = folder.rename(tmp_path / f"{folder.name}.x1y2")
    (left / "contents.json").unlink()
    _classification(loaded, packer, tmp_path)
    assert _folders(tmp_path) == [folder]


def test_who_wants_what_is_being_written_waits(
    loaded, packer, tmp_path, monkeypatch
):
    written = []
    write = token_cache._write
    monkeypatch.setattr(
        token_cache,
        "_write",
        lambda *arguments: written.append(1) or write(*arguments),
    )
    with futures.ThreadPoolExecutor(4) as pool:
        calls = [
            pool.submit(_classification, loaded, packer, tmp_path)
            for _ in range(4)
        ]
    lengths = [call.result().lengths.tolist() for call in calls]
    assert lengths == [lengths[0]] * 4 and len(written) == 1


def test_a_graph_holds_no_tokens(loaded, packer, tmp_path):
    """So that it can go to the workers of a tf.data service."""
    head, fields, rows = _case("classification", loaded)
    rows = rows * 400
    examples = token_cache.examples(head, fields, packer, rows, tmp_path)
    plan = [pipeline.Batch(np.arange(4), 16)]
    (folder,) = _folders(tmp_path)

    def size(examples):
        data = pipeline.dataset(examples, plan)
        return len(data._as_serialized_graph().numpy())

    in_memory = dataclasses.replace(examples, mapped={})
    tokens = (folder / "token_ids").stat().st_size
    assert size(in_memory) - size(examples) > 1.5 * tokens


def test_a_folder_that_cannot_be_written_to(loaded, packer, tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(ConfigError, match="--cache_dir=.*file"):
        _classification(loaded, packer, file)


def test_contents_say_what_files_hold(loaded, packer, tmp_path):
    examples = _classification(loaded, packer, tmp_path)
    (folder,) = _folders(tmp_path)
    contents = json.loads((folder / "contents.json").read_text())
    tokens = np.fromfile(folder / "token_ids", "<i4")
    assert contents["token_ids"]["shape"] == [len(tokens)]
    assert examples.lengths.sum() == len(tokens)
