"""Compares the outputs of an exported file with those of its model."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

from keras import ops
import numpy as np

from tf_adapters.common.errors import AdapterError
from tf_adapters.export import token_outputs

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Iterable
    from collections.abc import Iterator
    from collections.abc import Mapping

    from tf_adapters.data.tokens.packer import Packer
    from tf_adapters.models.adapter_model import AdapterModel

    Run = Callable[[dict[str, np.ndarray]], Mapping[str, Any]]

TOLERANCE = 1e-4
_ROWS = 200
_ROWS_AT_ONCE = 20


def check(
    run: Run,
    model: AdapterModel,
    batches: Iterable[dict[str, np.ndarray]],
    what: str,
) -> None:
    """Compares the outputs of an exported file with those of its model.

    Args:
        run: Function that runs the file. It maps a dict of int32 features to a
            dict of outputs, named as in `token_outputs`.
        model: `AdapterModel` with a head.
        batches: Dicts of features to compare on; see `random_batches`.
        what: Kind of file, for the error message, such as "ONNX file".

    Raises:
        AdapterError: If an output differs by more than 1e-4 or, if it is
            greater than 1, by more than 1e-4 of its value.
    """
    for features in batches:
        found = run(features)
        for name, value in token_outputs.compute(model, features).items():
            expected = ops.convert_to_numpy(value)
            difference = _difference(found[name], expected)
            if not difference <= TOLERANCE:
                raise AdapterError(
                    f"The {what}'s `{name}` differs from the model's by "
                    f"{difference:.1e}, more than {TOLERANCE:.0e}. Nothing "
                    "was written."
                )


def _difference(found: np.ndarray, expected: np.ndarray) -> float:
    """Returns the largest difference, relative to values greater than 1.

    Numbers that a regression predicts can be large, and float32 has 7 digits.
    """
    scale = np.maximum(1, np.abs(expected))
    return float((np.abs(expected - found) / scale).max())


def random_batches(
    model: AdapterModel, packer: Packer, rows: int = _ROWS
) -> Iterator[dict[str, np.ndarray]]:
    """Yields batches of random tokens as dicts of int32 arrays.

    Args:
        model: `AdapterModel` with a head.
        packer: `TextPacker`.
        rows: Number of rows, a multiple of 20. Defaults to 200. The first rows
            have 2 tokens, and the last rows have the packer's maximum length.
    """
    generator = np.random.default_rng(0)
    size = model.encoder_info.backbone.token_embedding.input_dim
    for length in np.linspace(2, packer.max_length, rows // _ROWS_AT_ONCE):
        features = {}
        for name, shape in model.feature_shapes().items():
            whole = (_ROWS_AT_ONCE, *[3] * (len(shape) - 2), int(length))
            limit = {"token_ids": size, "padding_mask": 2}.get(name, 1)
            features[name] = generator.integers(0, limit, whole, "int32")
        features["padding_mask"][..., :2] = 1
        yield features
