"""The program next to an ONNX file prints what `tf-adapters predict` does."""

import json
import runpy
import sys

import pytest

from tests import tiny
from tests.export import conftest
from tests.export import head_models
import tf_adapters
from tf_adapters import heads
from tf_adapters.data.rows import list_fields
from tf_adapters.export import onnx_model
from tf_adapters.serving import reading

pytestmark = pytest.mark.integration

_LABELS = ("bad", "good", "dull")
_LONG = "the film is not good but it was very dull and this plot bad " * 2
_PAIR = ("the film is good", "it was bad")
# For each head: rows as `TextModel.answer` takes them, and as the command does.
_CASES = {
    "questions": (
        heads.Choice(),
        [
            (
                {"a": [a], "b": [b], "c": [["film", "plot"]]},
                [a, b, "film", "plot"],
            )
            for a, b in (("the film", "is good"), ("it was", "very bad"))
        ],
    ),
    "tags": (
        heads.Tagging(_LABELS),
        [
            (_LONG.split(), [_LONG]),
            (["Élan", "\u200b", "films"], ["Élan \u200b films"]),
        ],
    ),
    "classes": (
        heads.MultiLabel(_LABELS, threshold=0.4),
        [(text, [text]) for text in ("very", _LONG)],
    ),
    "number": (heads.Regression(), [(_PAIR, _PAIR), ("very", ["very"])]),
    "windows": (
        heads.Classification(_LABELS, windows=3, window_stride=5),
        [(text, [text]) for text in ("", "very", _LONG)],
    ),
    "vectors": (heads.SentenceVector(), [(_PAIR, _PAIR), ("bad", ["bad"])]),
    "triple": (
        heads.SentenceRanking(),
        [((*_PAIR, "dull"), (*_PAIR, "dull"))],
    ),
    "choice": (
        heads.Choice(blank="_"),
        [
            (
                ("the _ is good", ["film", "plot", "dull film"]),
                ["the _ is good", "film", "plot", "dull film"],
            )
        ],
    ),
}


def _printed(folder, arguments, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["run.py", *arguments])
    monkeypatch.setattr(sys.stdout, "reconfigure", lambda **_: None, False)
    runpy.run_path(str(folder / "run.py"), run_name="__main__")
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def _rounded(value):
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return pytest.approx(value, abs=1e-4) if type(value) is float else value


@pytest.mark.slow
@pytest.mark.parametrize("kind", _CASES)
def test_it_prints_the_answer(kind, tmp_path, monkeypatch, capsys):
    head, rows = _CASES[kind]
    method = tf_adapters.methods.BitFit()
    model = tf_adapters.adapt(head_models.bert(), method, head)
    tiny.randomize(model.trained_variables().values(), 0.8)
    packer = conftest.make_packer("bert")
    fields = ("a", "b", "c") if kind == "questions" else ()
    folder = onnx_model.export_onnx(
        model, packer, tmp_path / "model", text_fields=fields
    )
    text_model = tf_adapters.TextModel.of_adapter(
        model, preprocessor=packer, max_length=conftest.MAX_LENGTH
    )
    text_model.text_fields = fields or None
    answers = []
    for row, arguments in rows:
        (expected,) = text_model.answer(row if kind == "questions" else [row])
        found = _printed(folder, arguments, monkeypatch, capsys)
        assert found == _rounded(expected)
        answers.append(found)
    # Different texts have different answers.
    assert len(answers) == len({json.dumps(one) for one in answers})


def test_it_needs_a_text(tmp_path, monkeypatch):
    program = onnx_model.__file__.replace("onnx_model", "run_onnx")
    monkeypatch.setattr(sys, "argv", ["run.py"])
    monkeypatch.setattr(sys.stdout, "reconfigure", lambda **_: None, False)
    with pytest.raises(SystemExit, match="Give a text"):
        runpy.run_path(program, run_name="__main__")


@pytest.mark.parametrize(
    ("head", "fields", "texts", "shown"),
    [
        (
            "classification",
            ["text_a", "text_b"],
            ["one"],
            "<text_a>. .<text_b>",
        ),
        ("tagging", ["tokens"], ["a", "man"], "<tokens>"),
        ("choice", ["text", "choices"], ["a", "b"], "<choice>. .<choice ...>"),
        ("choice", ["a", "b", "c"], ["1", "2", "3"], "<a>. .<b>. .<choice>"),
    ],
)
def test_a_wrong_number_of_texts(head, fields, texts, shown):
    program = onnx_model.__file__.replace("onnx_model", "run_onnx")
    check = runpy.run_path(program)["check_count"]
    with pytest.raises(SystemExit, match=shown):
        check(texts, fields, {"name": head})


def test_a_text_has_the_words_of_training():
    program = onnx_model.__file__.replace("onnx_model", "run_onnx")
    words_of = runpy.run_path(program)["words_of"]
    text = " 10\u00a0000\u3000 euros\t\n"
    assert words_of(text) == list_fields.words_of(text) == reading._words(text)
    assert words_of(text) == ["10\u00a0000\u3000", "euros"]


@pytest.mark.parametrize(
    ("head", "counts"),
    [
        ({"name": "classification"}, {1, 2}),
        ({"name": "classification", "windows": 3}, {1}),
        ({"name": "tagging"}, {1}),
        ({"name": "choice"}, {3, 4}),
        ({"name": "sentence_ranking"}, {1, 2, 3, 4}),
    ],
)
def test_the_number_of_texts_without_names(head, counts):
    program = onnx_model.__file__.replace("onnx_model", "run_onnx")
    check = runpy.run_path(program)["check_count"]
    for count in range(1, 5):
        if count in counts:
            check(["text"] * count, [], head)
        else:
            with pytest.raises(SystemExit, match=f"Received: {count} texts"):
                check(["text"] * count, [], head)
