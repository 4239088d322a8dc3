"""Explanations as text, as a page and as a picture, and the command."""

import re

import numpy as np
import pytest

from tests.cli import subcommands
from tests.text.models import text_model
from tf_adapters import heads
from tf_adapters.common.errors import UserError
from tf_adapters.explain.explanation import Explanation
from tf_adapters.explain.explanation import Variant

pytestmark = pytest.mark.integration


def _variant(name, label, probability, score):
    probabilities = {"bad": 1 - probability, "good": probability}
    answer = {"label": label, "probabilities": probabilities}
    return Variant(name, answer, np.array([score]))


ONE = Explanation(
    words=("[CLS]", "fine", "<film>", "[SEP]"),
    answers=("good",),
    score_name="log-odds",
    gradient=np.array([[0.0, 1.0, -0.5, 0.0]]),
    left_out=np.array([[np.nan, 2.0, -1.0, np.nan]]),
    movements=np.array([[0.01, 0.25, 0.5, 0.0]]),
    variants=(
        _variant("complete", "good", 0.9, 2.2),
        _variant("without the adapter", "bad", 0.4, -0.4),
    ),
    members=("first", "second"),
    member_weights={
        (0, "after_ffn"): np.array([[1, 0], [0.5, 0.5], [0, 1], [1, 0]]),
        (1, "after_ffn"): np.array([[1, 0], [0.3, 0.7], [0, 1], [1, 0]]),
    },
)
TEXT = """\
good (0.90)
good: log-odds +2.20

        left out              gradient                b1
[CLS]                           +0.000              1.0%
fine       +2.00  ██████████     +1.00  ██████████   25%
<film>     -1.00  ░░░░░          -0.50  ░░░░░        50%
[SEP]                           +0.000              0.0%
left out: the answer's log-odds minus its log-odds without the word
gradient: gradient times input; bars are relative to the longest
b1, b2, ...: how far the block's adapter moves the word

adapters             answer       log-odds
complete             good (0.90)     +2.20
without the adapter  bad (0.60)      -0.40

used members  first  second
[CLS]          100%    0.0%
fine            40%     60%
<film>         0.0%    100%
[SEP]          100%    0.0%"""


def test_the_text():
    assert str(ONE) == TEXT
    colored = ONE.to_text(color=True)
    assert "\x1b[30;48;5;39mfine\x1b[0m" in colored  # For: blue, strongest.
    assert "\x1b[30;48;5;216m<film>\x1b[0m" in colored  # Against: orange.


def test_the_page_escapes_texts_and_shades_words(tmp_path):
    page = ONE.save(tmp_path / "new" / "one.html").read_text("utf-8")
    assert page == ONE.to_html() == ONE._repr_html_()
    assert "<script" not in page and "<film>" not in page
    assert "&lt;film&gt;" in page
    shaded = re.findall(r'rgba\(([\d,]+),([\d.]+)\)" title="(.*?)"', page)
    assert shaded[1] == ("0,114,178", "0.60", "+2.00")
    assert shaded[2] == ("213,94,0", "0.30", "-1.00")
    assert "<td>bad (0.60)</td><td>-0.40</td>" in page
    # A special token that has no value is not among the strongest words.
    lines = re.findall(r"<p>([^<]*)</p>", page)
    assert lines and not any(re.search(r"\] (,|$)", line) for line in lines)


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_the_picture_has_a_panel_for_each_part(tmp_path, suffix):
    content = ONE.save(tmp_path / f"one{suffix}").read_bytes()
    start = {".png": b"\x89PNG", ".svg": b"<?xml"}[suffix]
    assert content.startswith(start)
    if suffix == ".svg":
        for title in ("for good", "moved by adapters", "without adapters"):
            assert f"<!-- {title}".encode() in content


def test_another_kind_of_file_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"\.html"):
        ONE.save(tmp_path / "one.txt")


def test_tags_have_a_line_for_each_word(tmp_path):
    model = text_model(head=heads.Tagging(("X", "Y")))
    (one,) = model.explain([["the", "film"]])
    text = str(one)
    tags = model.answer([["the", "film"]])[0]["tags"]
    assert text.splitlines()[0] == " ".join(tags)
    assert f"the: {tags[0]}" in text and "mean log-odds" in text
    assert f"film: {tags[1]}" in one.to_html()
    one.save(tmp_path / "tags.png")


@pytest.fixture(name="folder", scope="module")
def _folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explained") / "tags"
    model = text_model(head=heads.Tagging(("X", "Y")))
    model.text_fields = ("tokens",)
    model.save_adapter(folder)
    return folder


def test_the_command_splits_words_of_tags(folder, capsys, tmp_path):
    assert subcommands.run("explain", folder, "the film", "--label=Y") == 0
    assert "film: Y" in capsys.readouterr().out
    page = tmp_path / "page.html"
    assert subcommands.run("explain", folder, "a b", f"--output={page}") == 0
    assert capsys.readouterr().out == f"{page}\n"
    assert "a: " in page.read_text("utf-8")
    # A space that does not end a line, which is a part of a word.
    assert subcommands.run("explain", folder, "a\u00a0b c", "--label=Y") == 0
    assert len(capsys.readouterr().out.splitlines()[0].split()) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "takes the folder of a run and a quoted text"),
        (("the", "film"), "reads `tokens`. After its folder, give a quoted"),
    ],
)
def test_a_wrong_command_is_one_sentence(folder, capsys, arguments, message):
    assert subcommands.run("explain", folder, *arguments) == 1
    assert message in capsys.readouterr().err
