"""Finds words that CONTRIBUTING's table says not to write.

    python -m tests.lint.words

Words and phrases in backticks are searched for, in lower and upper case; `*` is
any ending. Code, comments, messages, pages and notebooks are searched alike.
"""

from pathlib import Path
import re
import sys

ROOT = Path(__file__).parents[2]
_HERE = Path(__file__).parent  # Its tests have the words.
_PAGE = ROOT / "CONTRIBUTING.md"
_FOLDERS = ("benchmarks", "docs", "examples", "official_configs")
_FOLDERS += ("release", "tests", "tf_adapters")
_SUFFIXES = (".html", ".ipynb", ".js", ".md", ".py", ".txt", ".yaml")
# Between the words of a phrase: also a new line of a comment or of a string.
_GAP = r"(?:[\s#\"']+|_)"


def listed():
    """Returns a list of the words and phrases to avoid, from the table."""
    lines = _PAGE.read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if "do not write" in line)
    words = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        words += re.findall(r"`([^`]+)`", line.split("|")[1])
    return words


def pattern_of(words):
    """Returns a regular expression that matches any of the words."""
    phrases = [
        _GAP.join(
            re.escape(word).replace(r"\*", "[a-z]*") for word in w.split()
        )
        for w in words
    ]
    return re.compile(
        rf"(?<![a-z])(?:{'|'.join(phrases)})(?![a-z])", re.IGNORECASE
    )


def find(text, pattern):
    """Yields the number of a line and the words that are found there."""
    for match in pattern.finditer(text):
        number = text.count("\n", 0, match.start()) + 1
        yield number, " ".join(match.group().split())


def _files():
    for path in sorted(ROOT.glob("*")):
        if path.suffix in _SUFFIXES and path != _PAGE:
            yield path
    for folder in _FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in _SUFFIXES and path.parent != _HERE:
                yield path


def main():
    """Prints what is found; returns 1 if there is any, else 0."""
    pattern = pattern_of(listed())
    found = [
        f"{path.relative_to(ROOT)}:{number}: `{words}`: see CONTRIBUTING.md, "
        "Words we use"
        for path in _files()
        for number, words in find(path.read_text(encoding="utf-8"), pattern)
    ]
    print("\n".join(found) or "No word to avoid.")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
