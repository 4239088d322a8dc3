"""Readers of data files, one for each format."""

import csv
import dataclasses
import io
import json

from tests.fuzz.reader import Reader
from tf_adapters import tasks
from tf_adapters.data.rows import files
from tf_adapters.data.rows import load
from tf_adapters.data.rows import sampling
from tf_adapters.tasks import glue

_TEXTS = (
    "a film",
    'He said: "no", twice',
    "naïve – 電影 🎬",
    "3 < 4\\n",
    "x\u2028y",
)
_WORDS = (("Anna", "B-PER"), ("aus", "O"), ("Köln", "B-LOC"), ("電影", "O"))
_QUESTION = {"id": "q1", "question": "Who?", "context": "Anna came, naïvely."}
_ANSWER = {"text": ["Anna"], "answer_start": [0]}

_LINES = {
    "sst2": [
        {"sentence": text, "label": number % 2}
        for number, text in enumerate(_TEXTS)
    ],
    "stsb": [
        {"sentence1": text, "sentence2": "a plot", "label": 2.5}
        for text in _TEXTS
    ],
    "winogrande": [
        {"sentence": f"_ {text}", "choices": ["Anna", "Ben"], "label": 1}
        for text in _TEXTS
    ],
    "wikiann": [
        {"tokens": [word for word, _ in _WORDS], "tags": [t for _, t in _WORDS]}
    ]
    * 3,
    "squad": [{**_QUESTION, "answers": _ANSWER}] * 3,
}
_SQUAD = {
    "data": [
        {
            "title": "t",
            "paragraphs": [
                {
                    "context": _QUESTION["context"],
                    "qas": [
                        {
                            "id": f"q{number}",
                            "question": "Who?",
                            "answers": [{"text": "Anna", "answer_start": 0}],
                        }
                        for number in range(3)
                    ],
                }
            ],
        }
    ]
}


def _jsonl(name):
    return "".join(json.dumps(row) + "\n" for row in _LINES[name])


def _table(delimiter):
    rows = [(text, i % 2) for i, text in enumerate(_TEXTS)]
    file = io.StringIO()
    quoting = csv.QUOTE_MINIMAL if delimiter == "," else csv.QUOTE_NONE
    csv.writer(
        file,
        delimiter=delimiter,
        lineterminator="\n",
        quoting=quoting,
        quotechar=None if delimiter == "\t" else '"',
    ).writerows([("sentence", "label"), *rows])
    return file.getvalue()


def _words(line):
    return ("".join(line(*pair) for pair in _WORDS) + "\n") * 3


def _conllu(word, tag):
    return f"1\t{word}\t_\tX" + "\t_" * 6 + "\n"


# Name of a file, its task, and its content.
_FILES = {
    "class.jsonl": ("sst2", _jsonl("sst2")),
    "number.jsonl": ("stsb", _jsonl("stsb")),
    "choice.jsonl": ("winogrande", _jsonl("winogrande")),
    "words.jsonl": ("wikiann", _jsonl("wikiann")),
    "question.jsonl": ("squad", _jsonl("squad")),
    "table.csv": ("sst2", _table(",")),
    "table.tsv": ("sst2", _table("\t")),
    "words.conll": ("wikiann", _words("{} {}\n".format)),
    "words.conllu": ("ud_pos", _words(_conllu)),
    "questions.json": ("squad", json.dumps(_SQUAD)),
}


def _read(name, folder):
    """Reads a file as training rows, and again as texts to predict."""
    task = tasks.get(_FILES[name][0])
    path = folder / name
    task = dataclasses.replace(task, files={"train": str(path)})
    rows = load.load_split(task, "train")
    assert rows
    # What the tokenizer and the file of predictions do with rows.
    json.dumps(rows, ensure_ascii=False).encode()
    return rows, sampling.fingerprint(rows), load.load_file(task, path)


def _reader(name):
    content = _FILES[name][1].encode()
    return Reader(
        lambda folder: (folder / name).write_bytes(content),
        lambda folder: _read(name, folder),
    )


def _read_texts(folder):
    rows = load.load_file(tasks.get("sst2"), folder / "texts.txt")
    json.dumps(rows, ensure_ascii=False).encode()
    return rows


def _read_stream(folder):
    file = io.BytesIO((folder / "stream.jsonl").read_bytes())
    return load.load_stream(tasks.get("sst2"), file, "standard input")


def _read_glue(folder):
    table = files.read_glue_file(folder / "train.tsv", glue.STSB)
    table.raise_problems()
    return table.rows


_STSB = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\t"
_STSB += "sentence1\tsentence2\tscore\n"
_STSB += "".join(
    f"{i}\tg\tf\t2012\t1\tnone\tnone\t{text}\tA plot.\t{i}.000\n"
    for i, text in enumerate(_TEXTS)
)

READERS = {
    **{f"rows: {name}": _reader(name) for name in _FILES},
    "rows: texts.txt": Reader(
        lambda folder: (folder / "texts.txt").write_text("\n".join(_TEXTS)),
        _read_texts,
    ),
    "rows: a stream": Reader(
        lambda folder: (folder / "stream.jsonl").write_text(_jsonl("sst2")),
        _read_stream,
        special=False,
    ),
    "rows: GLUE's file": Reader(
        lambda folder: (folder / "train.tsv").write_text(_STSB), _read_glue
    ),
}
