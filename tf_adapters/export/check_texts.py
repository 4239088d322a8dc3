"""Texts on which an exported file is compared with its model.

The texts are the validation rows of the run, rows from the caller, or built-in
sentences. Static quantization also measures the ranges of activations on texts.
"""

from __future__ import annotations

import dataclasses
import logging
from typing import TYPE_CHECKING

from keras import ops
import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.data.batches import batch_plan
from tf_adapters.data.batches import pipeline
from tf_adapters.data.rows import generated
from tf_adapters.export import odd_texts
from tf_adapters.export.text_fields import names_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Mapping
    from collections.abc import Sequence
    from typing import Any

    from tf_adapters.config.settings import Config
    from tf_adapters.data.tokens.packer import Packer
    from tf_adapters.models.adapter_model import AdapterModel

ROWS = 200
_AT_ONCE = 20
_LOGGER = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class CheckTexts:
    """Texts on which an exported file is compared with its model.

    If rows are not given, built-in sentences are used.

    Attributes:
        fields: Keys of a row that hold texts.
        rows: Rows on which file and model are compared.
        calibration: Rows on which ranges of activations are measured.
    """

    fields: tuple[str, ...] = ()
    rows: Sequence[Mapping[str, Any]] = ()
    calibration: Sequence[Mapping[str, Any]] = ()

    def checked(
        self, model: AdapterModel, packer: Packer
    ) -> Iterator[dict[str, np.ndarray]]:
        """Yields the batches on which the file is compared with the model.

        Each batch is a dict of token features for at most 20 examples.

        Args:
            model: `AdapterModel` with a head.
            packer: `TextPacker`.
        """
        if self.rows:
            return _batches(model, packer, self.rows[:ROWS], self.fields)
        return _built_in(model, packer, "validation")

    def calibrating(
        self, model: AdapterModel, packer: Packer
    ) -> Iterator[dict[str, np.ndarray]]:
        """Yields the batches on which ranges of activations are measured.

        Batches and arguments are as in `checked`.
        """
        if self.calibration:
            rows = self.calibration[:ROWS]
            return _batches(model, packer, rows, self.fields)
        return _built_in(model, packer, "train")


def texts_of_rows(
    rows: Sequence[Mapping[str, Any]], text_fields: str | Sequence[str]
) -> CheckTexts:
    """Returns a caller's rows as `CheckTexts`.

    Args:
        rows: Rows to check and calibrate on; none for built-in sentences.
        text_fields: Names of the rows' texts, or the name of their only one.

    Raises:
        UserError: If a name is missing in a row, or if there are rows but no
            names.
    """
    fields = names_of(text_fields)
    if rows and not fields:
        raise UserError(
            "`rows` need the names of their texts, for example "
            f"text_fields=({next(iter(rows[0]), 'text')!r},)."
        )
    for number, row in enumerate(rows):
        missing = [field for field in fields if field not in row]
        if missing:
            raise UserError(
                f"Row {number} of `rows` has no `{missing[0]}`, which is one "
                f"of `text_fields`. It has: {cut(', '.join(map(str, row)))}"
            )
    return CheckTexts(fields, rows, rows)


def texts_of_run(config: Config) -> CheckTexts:
    """Returns the validation and training rows of a run as `CheckTexts`.

    If the data cannot be read, a warning is logged, and built-in sentences are
    used.

    Args:
        config: `Config` of the run.
    """
    # Imported here, so that library users can export without training code.
    from tf_adapters.runs import task_data

    try:
        data = task_data.load_task_data(config)
    except UserError as error:
        _LOGGER.warning(
            "The data of the run cannot be read, so the exported file is "
            "checked on built-in sentences: %s",
            cut(error),
        )
        return CheckTexts()
    train, validation = data.rows["train"], data.rows["validation"]
    return CheckTexts(data.task.text_fields, validation or train, train)


def _batches(
    model: AdapterModel,
    packer: Packer,
    rows: Sequence[Mapping[str, Any]],
    fields: Sequence[str],
) -> Iterator[dict[str, np.ndarray]]:
    """Yields batches with the features of at most 200 examples.

    The model's head encodes `rows` as examples. `fields` are the keys of a row
    that hold texts.
    """
    examples = pipeline.to_tensors(
        model.head.encode(list(map(dict, rows)), fields, packer, labeled=False)
    )
    plan = batch_plan.plan_evaluation(examples.lengths, _AT_ONCE)
    for batch in pipeline.dataset(examples, plan[: ROWS // _AT_ONCE]):
        yield {
            name: batch[name].numpy().astype("int32")
            for name in model.feature_shapes()
        }


def _built_in(
    model: AdapterModel, packer: Packer, split: str
) -> Iterator[dict[str, np.ndarray]]:
    """Yields batches with the features of built-in texts.

    Batches alternate between single texts and pairs of texts. `split` selects
    the texts: `"train"` or `"validation"`.
    """
    texts = [
        row["sentence"]
        for name in ("sentiment", "acceptability")
        for row in generated.read_rows(name, split)[: ROWS // 2 - _AT_ONCE]
    ]
    texts += odd_texts.make(2 * _AT_ONCE)
    for start in range(0, ROWS, _AT_ONCE):
        first = texts[start : start + _AT_ONCE]
        is_pair = start // _AT_ONCE % 2
        packed = packer(first, first[::-1]) if is_pair else packer(first)
        yield _shaped(model, packed)


def _shaped(
    model: AdapterModel, packed: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """Reshapes the packer's features to the shapes that the model takes.

    If the model takes several sequences for a row, each row gets two texts.
    Features that the packer does not make, such as positions of masked tokens,
    are 0.
    """
    features = {}
    for name, shape in model.feature_shapes().items():
        if name not in packed:
            features[name] = np.zeros((_AT_ONCE, 2), "int32")
            continue
        value = ops.convert_to_numpy(packed[name])
        texts = [2] * (len(shape) - 2)
        features[name] = value.reshape(-1, *texts, value.shape[1])
    return features
