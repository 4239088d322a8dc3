"""Damages bytes without knowledge of their format."""

import re
import struct

_PIECES = (
    *(b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\r", b"\n\n"),
    *(
        b'"',
        b"'",
        b",",
        b"\t",
        b"{",
        b"}",
        b"[",
        b"]",
        b":",
        b"- ",
        b"&a ",
        b"*a",
    ),
    *(b"9" * 5000, b"1e999", b"NaN", b"-0", b"-1", b"true", b"null", b"0x_"),
    *(b"[" * 2000, b'{"a":' * 2000, b"../../x", b"/etc/passwd", b"%s%n{0}"),
    *(
        b"\xe2\x80\xae",
        b"\xc2\x85",
        b"\xe2\x80\xa8",
        b"!!python/name:os.system",
    ),
    *(b"\x80\x04\x95", b"PK\x03\x04", b"\x1f\x8b\x08", b"\\ud800", b"\\u0000"),
)
_EXTREMES = tuple(
    struct.pack(code, value)
    for code, bits in (("<B", 8), ("<H", 16), ("<I", 32), ("<Q", 64))
    for value in (0, 1, (1 << bits) - 1, 1 << (bits - 1), (1 << (bits - 1)) - 1)
)
_NUMBERS = (b"-1", b"0", b"1e308", b"1e999", b"NaN", b"9" * 400, b"2.5")
_NUMBERS += (b"4294967296", b"9223372036854775807", b"1000000000000")


def _place(content, chance):
    """Draws an index; half of the time near the start, where headers are."""
    near = min(len(content), 600) if chance.random() < 0.5 else len(content)
    return chance.randrange(near + 1)


def _flip_bits(content, chance):
    content = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 8))):
        if content:
            place = min(_place(content, chance), len(content) - 1)
            content[place] ^= 1 << chance.randrange(8)
    return bytes(content)


def _cut(content, chance):
    return content[: _place(content, chance)]


def _drop(content, chance):
    start = _place(content, chance)
    return content[:start] + content[start + chance.choice((1, 4, 30, 999)) :]


def _double(content, chance):
    start = _place(content, chance)
    part = content[start : start + chance.choice((1, 8, 100, 2000))]
    return content[:start] + part * chance.choice((2, 3, 50)) + content[start:]


def _insert(content, chance):
    start = _place(content, chance)
    return content[:start] + chance.choice(_PIECES) + content[start:]


def _overwrite(content, chance):
    start, extreme = _place(content, chance), chance.choice(_EXTREMES)
    return content[:start] + extreme + content[start + len(extreme) :]


def _change_number(content, chance):
    found = list(re.finditer(rb"-?\d+(\.\d+)?", content[:20_000]))
    if not found:
        return _insert(content, chance)
    start, end = chance.choice(found).span()
    return content[:start] + chance.choice(_NUMBERS) + content[end:]


def _replace_all(content, chance):
    return chance.choice(
        (b"", b"\n", b"\0" * 100, b"null", b"[]", b"{}", b"0", b"\xff" * 20)
        + (chance.randbytes(100), b"[" * 100_000, b"a" * 100_000)
    )


def _swap_lines(content, chance):
    lines = content.split(b"\n")
    one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return b"\n".join(lines)


_MUTATIONS = (
    *(_flip_bits, _cut, _drop, _double, _insert, _overwrite),
    *(_change_number, _replace_all, _swap_lines),
)


def mutate(content, chance):
    """Returns damaged bytes.

    Args:
        content: Bytes.
        chance: `random.Random`.
    """
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        content = chance.choice(_MUTATIONS)(content, chance)
    return content
