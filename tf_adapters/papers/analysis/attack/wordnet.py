"""Reads synonyms from WordNet's database files.

The folder has `index.*`, `data.*` and `*.exc`, as in the manual page wndb(5WN).
It comes from Debian's package `wordnet-base` or from Princeton's archives.
Nothing is downloaded.
"""

from collections.abc import Callable
import functools
from pathlib import Path
from typing import Any

from tf_adapters.common.errors import UserError

# The folder that Debian's package installs.
DEFAULT_FOLDER = "/usr/share/wordnet"
# WordNet's letters for parts of speech, and the names of their files.
PARTS_OF_SPEECH = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
# Endings of inflected forms, and the endings of their base forms.
_ENDINGS = {
    "n": "s: ses:s ves:f xes:x zes:z ches:ch shes:sh men:man ies:y",
    "v": "s: ies:y es:e es: ed:e ed: ing:e ing:",
    "a": "er: est: er:e est:e",
    "r": "",
}


class WordNet:
    """Looks up synonyms of words in WordNet.

    Args:
        folder: Path of a folder in WordNet's format.

    Raises:
        UserError: If the folder lacks a file.
    """

    def __init__(self, folder: Any = DEFAULT_FOLDER) -> None:
        self.folder = Path(folder)
        read = {"index": _read_index, "data": Path.read_bytes}
        self._index, self._data = (
            {
                letter: self._read(f"{kind}.{name}", function)
                for letter, name in PARTS_OF_SPEECH.items()
            }
            for kind, function in read.items()
        )
        self._exceptions = {
            letter: self._read(f"{name}.exc", _read_exceptions)
            for letter, name in PARTS_OF_SPEECH.items()
        }

    def _read(self, name: str, function: Callable[..., Any]) -> Any:
        try:
            return function(self.folder / name)
        except OSError as error:
            raise UserError(
                f"{self.folder} has no file `{name}` of WordNet. Install it "
                "(on Debian and Ubuntu: `apt-get install wordnet-base`), or "
                "give --wordnet=<folder>."
            ) from error

    def base_forms(self, word: str, part_of_speech: Any) -> list[Any]:
        """Returns the base forms of a word, if WordNet knows them.

        Args:
            word: Word in lower case.
            part_of_speech: A letter of `PARTS_OF_SPEECH`.
        """
        exceptions = self._exceptions[part_of_speech].get(word)
        if exceptions is not None:
            return self._known([word, *exceptions], part_of_speech)
        forms = [word]
        shorter = _without_endings(forms, part_of_speech)
        found = self._known(forms + shorter, part_of_speech)
        while not found and shorter:
            shorter = _without_endings(shorter, part_of_speech)
            found = self._known(shorter, part_of_speech)
        return found

    def _known(self, forms: Any, part_of_speech: Any) -> list[Any]:
        index = self._index[part_of_speech]
        return [form for form in dict.fromkeys(forms) if form in index]

    def synsets(self, word: str, part_of_speech: Any) -> list[list[Any]]:
        """Returns the senses of a word, each as a list of synonyms.

        Frequent senses come first. `part_of_speech` is one letter.
        """
        return [
            self._lemmas(part_of_speech, offset)
            for form in self.base_forms(word.lower(), part_of_speech)
            for offset in self._index[part_of_speech][form]
        ]

    def lemmas(self, word: str, parts_of_speech: Any) -> list[Any]:
        """Returns the synonyms of all senses of a word, with duplicates.

        They are sorted by `parts_of_speech`, a string of letters such as "nv",
        and then by frequency of the sense.
        """
        return [
            lemma
            for letter in parts_of_speech
            for lemmas in self.synsets(word, letter)
            for lemma in lemmas
        ]

    @functools.lru_cache(maxsize=100_000)  # noqa: B019 (one instance)
    def _lemmas(self, part_of_speech: Any, offset: Any) -> list[Any]:
        data = self._data[part_of_speech]
        fields = data[offset : data.index(b"\n", offset)].decode().split(" ")
        # Offset, file, type, hexadecimal count, then pairs of word and number.
        words = fields[4 : 4 + 2 * int(fields[3], 16) : 2]
        # Adjectives may end with a mark for their position: `galore(ip)`.
        return [word.partition("(")[0] for word in words]


def _without_endings(forms: Any, part_of_speech: Any) -> list[Any]:
    rules = [rule.split(":") for rule in _ENDINGS[part_of_speech].split()]
    return [
        form.removesuffix(old) + new
        for form in forms
        for old, new in rules
        if form.endswith(old)
    ]


def _read_index(path: Path) -> dict[Any, Any]:
    """Returns a dict from each lemma to the byte offsets of its senses.

    `path` is an `index.*` file; the offsets are positions in the `data.*` file.
    """
    index = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("  "):
            continue  # The license.
        lemma, _, synsets, *_rest = fields = line.split()
        index[lemma] = [int(offset) for offset in fields[-int(synsets) :]]
    return index


def _read_exceptions(path: Path) -> dict[str, list[str]]:
    """Returns a dict from an inflected form to its base forms."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return {form: bases for form, *bases in map(str.split, lines)}
