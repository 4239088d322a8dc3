"""Draws requests: right ones, and what hostile clients send."""

import numpy as np

from tests.export import conftest

# Words and positions of the encoder.
_WORDS, _POSITIONS = 100, 32
_EXTREMES = (-1, 2, _WORDS - 1, _WORDS, 2**31 - 1, -(2**31))
_DTYPES = ("int64", "float32", "bool", "uint8", "str", "int16", "complex64")
_TEXTS = (
    *("the film is good", "it was bad and dull", "", " ", "very", "plot " * 50),
    *(
        "[MASK] of it",
        "[CLS] [SEP] [PAD]",
        "Ünï 電影 🎬",
        "\u202e\u200b",
        "x" * 900,
    ),
)


def draw(signature, chance):
    """Returns a request, a dict of arrays; two thirds of them are damaged.

    Args:
        signature: `models.Signature` or `models.OnnxFile`.
        chance: `numpy.random.Generator`.
    """
    make = _texts if signature.takes_texts else _features
    request = make(signature, chance)
    damage = _damage_texts if signature.takes_texts else _damage_features
    for _ in range(chance.choice((0, 1, 1, 2))):
        request = damage(request, chance)
    return request


def _features(signature, chance):
    rows, tokens = chance.integers(1, 5), chance.integers(3, 17)
    rank = signature.inputs["token_ids"]
    shape = (rows, *chance.integers(1, 4, rank - 2), tokens)
    lengths = chance.integers(3, tokens + 1, shape[:-1])
    mask = np.arange(tokens) < lengths[..., None]
    mask_id = conftest.make_packer("bert").mask_id
    ids = chance.integers(0, _WORDS, shape)
    # Heads of masked tokens answer at these.
    ids = np.where(chance.random(shape) < 0.2, mask_id, ids)
    features = {
        "token_ids": ids * mask,
        "padding_mask": mask,
        "segment_ids": (np.arange(tokens) > 1) & mask,
        "masked_positions": _positions(ids * mask == mask_id),
    }
    return {name: features[name].astype("int32") for name in signature.inputs}


def _positions(found):
    """Returns the positions of each row where `found`, padded with -1."""
    order = np.argsort(~found, axis=-1, kind="stable")
    positions = np.where(np.take_along_axis(found, order, -1), order, -1)
    return positions[..., : max(1, found.sum(-1).max())]


def _damage_features(request, chance):
    if not request:
        return request
    name = chance.choice(list(request))
    array = request[name]
    kind = chance.integers(9)
    if kind == 0 and array.size and array.dtype == "int32":
        array = array.copy()
        array.flat[chance.integers(array.size)] = chance.choice(_EXTREMES)
    elif kind == 1:
        array = array[..., : chance.integers(array.shape[-1] + 1)]
    elif kind == 2:
        array = array[: chance.integers(len(array) + 1)]
    elif kind == 3:
        array = array[None]
    elif kind == 4:
        array = array.T
    elif kind == 5:
        array = array.astype(chance.choice(_DTYPES))
    elif kind == 6:
        longer = chance.choice((_POSITIONS, _POSITIONS + 1, 500))
        return {
            k: np.resize(v, (*v.shape[:-1], longer)) for k, v in request.items()
        }
    elif kind == 7:
        return {k: v for k, v in request.items() if k != name}
    else:
        return {k: v[: chance.integers(2)] for k, v in request.items()}
    return {**request, name: array}


def _texts(signature, chance):
    rows = chance.integers(1, 5)
    return {
        name: chance.choice(
            [text.encode() for text in _TEXTS],
            (rows, *chance.integers(1, 4, rank - 1)),
        ).astype(object)
        for name, rank in signature.inputs.items()
    }


def _damage_texts(request, chance):
    if not request:
        return request
    name = chance.choice(list(request))
    array = request[name]
    kind = chance.integers(7)
    if kind <= 2 and array.size and array.dtype == object:
        array = array.copy()
        place = np.unravel_index(chance.integers(array.size), array.shape)
        array[place] = _bytes(chance)
    elif kind == 3:
        array = array[: chance.integers(len(array) + 1)]
    elif kind == 4:
        array = array[None]
    elif kind == 5:
        array = np.arange(array.size).reshape(array.shape)
    else:
        return {k: v for k, v in request.items() if k != name}
    return {**request, name: array}


def _bytes(chance):
    kind = chance.integers(4)
    if kind == 0:
        return chance.bytes(chance.integers(60))
    if kind == 1:
        return b"good\0bad\xff\xfe"
    if kind == 2:
        return b"\xf0\x9f film \xed\xa0\x80"
    return b"film " * 4000
