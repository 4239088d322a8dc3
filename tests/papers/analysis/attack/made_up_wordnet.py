"""A few made-up lines in the format of WordNet's files."""

LICENSE = "  1 This line belongs to a license.\n"
DATA = {
    "noun": [
        "06 n 02 film 0 moving_picture 0 001 @ 00000000 n 0000 | a picture",
        "06 n 01 layer 0 000 | a thin film",
        # Eleven words: the count is hexadecimal.
        "06 n 0b a 0 b 0 c 0 d 0 e 0 f 0 g 0 h 0 i 0 j 0 k 0 000 | many",
    ],
    "verb": ["29 v 02 love 0 enjoy 0 000 | like", "42 v 01 be 0 000 | exist"],
    "adj": ["00 s 02 galore(ip) 0 abounding 0 000 | in great numbers"],
    "adv": ["02 r 01 well 0 000 | rightly"],
}
# Lemma, then the places of its synsets above, most frequent first.
INDEX = {
    "noun": {"film": [0, 1], "layer": [1], "a": [2], "box": [1], "ties": [1]},
    "verb": {"love": [0], "be": [1]},
    "adj": {"galore": [0], "large": [0]},
    "adv": {"well": [0]},
}
EXCEPTIONS = {"verb": "is be\nwas be unknown\n"}


def write_wordnet(folder):
    """Writes these lines into a folder and returns it."""
    for name, lines in DATA.items():
        text, offsets = LICENSE, []
        for line in lines:
            offsets.append(len(text))
            text += f"{len(text):08} {line}\n"
        (folder / f"data.{name}").write_text(text)
        index = [
            # Lemma, part of speech, counts, one symbol, counts, offsets.
            f"{lemma} {name[0]} {len(places)} 1 @ {len(places)} 0 "
            + " ".join(f"{offsets[place]:08}" for place in places)
            for lemma, places in INDEX[name].items()
        ]
        (folder / f"index.{name}").write_text(LICENSE + "\n".join(index) + "\n")
        (folder / f"{name}.exc").write_text(EXCEPTIONS.get(name, ""))
    return folder
