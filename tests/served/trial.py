"""One hostile request: it is refused, or each row is answered as if alone."""

import numpy as np

from tests.served import requests

_ABSOLUTE, _RELATIVE = 1e-5, 1e-5


def run(signature, number, seed):
    """Returns whether a request is answered, and not refused.

    Args:
        signature: `models.Signature` or `models.OnnxFile`.
        number: Number of the request.
        seed: Integer. Number and seed say which request is drawn.

    Raises:
        AssertionError: If the answer is wrong.
    """
    chance = np.random.default_rng((seed, number))
    request = requests.draw(signature, chance)
    try:
        answer = signature(request)
    except signature.refusals:
        return False
    counts = {len(array) for array in request.values()}
    assert len(counts) == 1, f"answered {_described(request)}"
    (count,) = counts
    assert {len(array) for array in answer.values()} == {count}
    for row in chance.permutation(count)[:2]:
        alone = signature({k: v[row : row + 1] for k, v in request.items()})
        _check_equal(answer, alone, row, request)
    return True


def _check_equal(answer, alone, row, request):
    for name, batch in answer.items():
        one, other = batch[row], alone[name][0]
        if np.ndim(one):  # A batch may be wider than a row of it.
            width = min(len(one), len(other))
            one, other = one[:width], other[:width]
        message = f"row {row} of {name}, {_described(request)}"
        if batch.dtype.kind == "f":
            assert np.isfinite(one).all(), message
            np.testing.assert_allclose(
                one, other, _RELATIVE, _ABSOLUTE, err_msg=message
            )
        elif name in ("words", "tokens"):
            np.testing.assert_array_equal(one, other, err_msg=message)


def _described(request):
    return {k: (v.dtype, v.shape, v.tolist()) for k, v in request.items()}
