"""Cases with invalid texts, labels and data files."""

import json

import numpy as np

from tests import commands
from tests.bad_input.case import error
from tests.bad_input.case import result
from tests.bad_input.case import warning
from tests.bad_input.space import MANY_WORDS
from tests.bad_input.space import ROWS
from tests.bad_input.space import Outcome
from tf_adapters import heads
from tf_adapters.data.tokens.packing import TextPacker
from tf_adapters.encoders.load import load_encoder

_EMOTIONS = [
    {"text": f"a {name}", "label": name} for name in ("anger", "joy", "love")
]
_NESTED = "[" * 100_000


def _row(**changes):
    return [ROWS[0], {**ROWS[1], **changes}]


def _trained_on(**files):
    return lambda space: space.train(**files)


def _predicted_from(name, content):
    return lambda space: space.predict(name=name, content=content)[0]


def _predicted_alike(*texts, **given):
    """Checks that both halves of the texts have equal predictions."""

    def do(space):
        outcome, found = space.predict(*texts, **given)
        half = len(found) // 2
        assert half, outcome.said
        np.testing.assert_allclose(found[:half], found[half:], rtol=1e-4)
        np.testing.assert_allclose(np.sum(found, -1), 1, rtol=1e-4)
        return outcome

    return do


def _tag_many_words(space):
    words = MANY_WORDS.split()
    row = {"tokens": words, "label": [0] * len(words)}
    _, tokenizer = load_encoder(commands.ENCODER)
    head = heads.Tagging(("O", "B-PER"))
    encoded = head.encode([row], ("tokens",), TextPacker(tokenizer, 24))
    assert encoded.counts.sum() == len(words) == 100_000
    assert max(map(len, encoded.token_ids)) <= 24
    return Outcome(0, "")


def _ask_many_words(space):
    answer = {"text": "end", "answer_start": MANY_WORDS.index("end")}
    row = {"question": "the", "context": MANY_WORDS, "label": [answer]}
    _, tokenizer = load_encoder(commands.ENCODER)
    head = heads.Span(stride=8)
    packer = TextPacker(tokenizer, 32)
    encoded = head.encode([row], ("question", "context"), packer)
    # Windows without the answer point to their first token.
    found = encoded.targets[encoded.targets[:, 0] > 0]
    assert len(found)
    for begin, end in found:
        assert begin <= end < 32
    return Outcome(0, "")


def _train_on_odd_texts(space):
    odd = ("", " ", "\0", "bad\0 film", MANY_WORDS, "x" * 100_000)
    rows = [{"sentence": text, "label": i % 2} for i, text in enumerate(odd)]
    outcome = space.train(train__jsonl=rows + ROWS, dev__jsonl=rows[:2])
    found = json.loads((space.folder / "run/result.json").read_text())
    assert np.isfinite(found["validation"]["accuracy"])
    assert found["examples"] == len(rows) + len(ROWS)
    return outcome


def _predict_a_folder(space):
    (space.folder / "in.jsonl").mkdir()
    path = str(space.folder / "in.jsonl")
    return space.command(space.run, mode="predict", input=path)


def _predict_over_the_input(space):
    path = space.folder / "in.txt"
    path.write_text("good\n", encoding="utf-8")
    files = {"input": str(path), "output": str(path)}
    outcome = space.command(space.run, mode="predict", **files)
    assert path.read_text(encoding="utf-8") == "good\n"
    return outcome


def _evaluate_on_no_rows(space):
    header = "sentence,label\n"
    return space.evaluate(train__csv=f"{header}a,0\n", dev__csv=header)


TEXTS = [
    result(
        "empty texts, NUL, a text of 100,000 words and a word of 100,000 "
        "characters, in training",
        "a finished run on all rows",
        _train_on_odd_texts,
    ),
    result(
        "an empty text",
        "predicted like a text of spaces",
        _predicted_alike("", "good", "  ", "good"),
    ),
    result(
        "NUL in a text (`\\u0000` in JSON)",
        "predicted like the text without it",
        _predicted_alike("good\0 bad", "\0", "good bad", ""),
    ),
    result(
        "NUL in a text (the byte, in `.txt`)",
        "predicted like the text without it",
        _predicted_alike(name="in.txt", content=b"good\0 bad\ngood bad\n"),
    ),
    result(
        "a text of 100,000 words",
        "predicted like its first `data.max_length` tokens",
        _predicted_alike(MANY_WORDS, MANY_WORDS[:400]),
    ),
    result(
        "a text of 100,000 words, in CSV",
        "read completely, and predicted in the same way",
        _predicted_alike(
            name="in.csv",
            content=f'sentence\n"{MANY_WORDS}"\n{MANY_WORDS[:400]}\n',
        ),
    ),
    result(
        "100,000 words to tag",
        "each word in one of the windows",
        _tag_many_words,
    ),
    result(
        "a text of 100,000 words with the answer at its end",
        "the answer in one of the windows",
        _ask_many_words,
    ),
]

FILES = [
    error(
        "bytes that are not UTF-8, in JSONL",
        "line 2: not UTF-8 at byte 15",
        _trained_on(
            train__jsonl=json.dumps(ROWS[0]).encode()
            + b'\n{"sentence": "\xff"}'
        ),
    ),
    error(
        "bytes that are not UTF-8, in a file to predict",
        "line 1: not UTF-8 at byte 3",
        _predicted_from("in.txt", b"a \xff\n"),
    ),
    error(
        "NUL outside of a JSON string",
        "line 1: not JSON: Expecting value",
        _predicted_from("in.jsonl", b"\0\n"),
    ),
    error(
        "a lone surrogate in JSON",
        "line 1: not JSON of Unicode text: '\\ud800' is half a character",
        _predicted_from("in.jsonl", b'{"sentence": "a \\ud800"}\n'),
    ),
    error(
        "JSON of 100,000 brackets",
        "line 2: not JSON that can be read: nested too deeply",
        _trained_on(train__jsonl=json.dumps(ROWS[0]) + "\n" + _NESTED),
    ),
    error(
        "choices of 100,000 brackets, in CSV",
        "line 2: field `choices` must be a list of texts as JSON",
        lambda space: space.train(
            "winogrande",
            train__csv=f"sentence,choices,label\na _,{_NESTED},0\n",
        ),
    ),
    error(
        "a number of 5,000 digits in JSON",
        "line 1: not JSON that can be read: Exceeds the limit",
        _predicted_from("in.jsonl", '{"sentence": ' + "9" * 5000 + "}\n"),
    ),
    error(
        "a quote that never ends, in CSV",
        "line 2: not CSV: unexpected end of data",
        _trained_on(train__csv='sentence,label\n"good,1\nbad,0\n'),
    ),
    error(
        "SQuAD's JSON cut in half",
        "in.json is not SQuAD's format",
        _predicted_from("in.json", '{"data": [{"paragraphs": '),
    ),
    error(
        "a CoNLL-U line with a column missing",
        "line 1: expected 10 columns, received 9",
        lambda space: space.train("ud_pos", train__conllu="1" + "\ta" * 8),
    ),
    error(
        "a folder instead of a file",
        "Is a directory",
        _predict_a_folder,
    ),
    error(
        "the input file as the output of `predict`",
        "--input and --output are the same file",
        _predict_over_the_input,
    ),
]


FIELDS = [
    error(
        "a missing field",
        "line 2: field `sentence` is missing; received `text`, `label`",
        _trained_on(train__jsonl=[ROWS[0], {"text": "a", "label": 1}]),
    ),
    error(
        "a missing column",
        "line 1: the header lacks the column `label`; it has `sentence`",
        _trained_on(train__csv="sentence\ngood\n"),
    ),
    error(
        "a column twice",
        "line 1: the header has the column `sentence` more than once",
        _trained_on(train__csv="sentence,sentence,label\ngood,bad,1\n"),
    ),
    error(
        "a field that is not text",
        "line 2: field `sentence` must be text, received 3 (int)",
        _trained_on(train__jsonl=_row(sentence=3)),
    ),
    error(
        "an unknown label",
        "line 2: unknown label 'goood'; expected one of 'negative', 'positive'",
        _trained_on(train__jsonl=_row(label="goood")),
    ),
    error(
        "a training row without a label",
        "line 2: field `label` has no label",
        _trained_on(train__jsonl=_row(label=None)),
    ),
    error(
        "a label that no floating-point number can hold",
        "a label must be a finite number",
        lambda space: space.train(
            "stsb",
            train__jsonl='{"sentence1": "a", "sentence2": "b", "label": 1'
            + "0" * 400
            + "}\n",
        ),
    ),
    error(
        "fewer tags than words",
        "line 1: 2 words have 1 tags",
        lambda space: space.train(
            "wikiann", train__jsonl=[{"tokens": ["a", "b"], "tags": ["O"]}]
        ),
    ),
    error(
        "an empty list of words",
        "line 1: field `tokens` must be a list of texts, received []",
        lambda space: space.train(
            "wikiann", train__jsonl=[{"tokens": [], "tags": []}]
        ),
    ),
]

SPLITS = [
    error(
        "an empty training split",
        "train.jsonl holds no rows",
        _trained_on(train__jsonl=""),
    ),
    error(
        "a validation split with only a header line",
        "dev.csv holds no rows",
        _evaluate_on_no_rows,
    ),
    error(
        "a class in validation that the training file, which defines the "
        "classes, does not have",
        "dev.jsonl:\n  line 1: unknown label 'fear'; expected one of 'anger'",
        lambda space: space.train(
            "cf_emotion",
            train__jsonl=_EMOTIONS,
            dev__jsonl=[{"text": "a", "label": "fear"}],
        ),
    ),
    warning(
        "a class of the task that is in validation and not in training",
        "1 classes occur in validation but never in training, so they "
        "cannot be predicted: `positive` (1)",
        lambda space: space.evaluate(
            train__jsonl=ROWS[::2],
            dev__jsonl=[{"sentence": "a", "label": 1}],
        ),
    ),
    warning(
        "texts that are in both training and test",
        "2 of 3 test rows have the same texts as a training row",
        lambda space: space.evaluate(
            train__jsonl=ROWS,
            dev__jsonl=[{"sentence": "a", "label": 1}],
            test__jsonl=[*ROWS[3:5], {"sentence": "new", "label": 1}],
        ),
    ),
]


CASES = [*TEXTS, *FILES, *FIELDS, *SPLITS]
