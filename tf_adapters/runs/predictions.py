"""A run's predictions, stored in small files next to its result.

`predictions/<split>.json.gz` holds the name of the head, the names of the
classes, if there are any, and lists with one entry per row of the data: labels
and predictions. The metrics of the result can be recomputed from these lists,
without the model or the data.
"""

from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import dataclasses
import gzip
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any
import zlib

from tf_adapters import heads
from tf_adapters.common import own_files
from tf_adapters.common.checks import check_known
from tf_adapters.common.errors import DataError
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown
from tf_adapters.common.text_files import parse_json
from tf_adapters.common.text_files import read_file
from tf_adapters.data.rows.splits import EVALUATED
from tf_adapters.runs import earlier_runs
from tf_adapters.runs import prediction_checks

if TYPE_CHECKING:
    from tf_adapters.heads.head import Head


FOLDER = "predictions"
# Maximum size of the JSON, in bytes. The predictions for a million texts with
# two classes take about four million bytes.
_LARGEST = 1 << 26
_ENDING = ".json.gz"


@dataclasses.dataclass(frozen=True)
class Predictions:
    """A run's predictions for a split.

    Attributes:
        head: Name of the head.
        compared: Dict of lists with one entry per row, see `Head.compare`.
        path: Path of the file with the predictions.
        labels: Class names in the order of their ids. Empty if there are no
            classes, and in files of earlier versions.
    """

    head: str
    compared: dict[str, Any]
    path: Path
    labels: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.compared["predicted"])

    def metrics(self, names: Sequence[str]) -> dict[Any, Any]:
        """Returns a dict from each metric name in `names` to its value."""
        with errors_as_damage(self.path):
            return heads.HEADS[self.head].score(names, self.compared)

    def are_right(self) -> list[Any]:
        """Returns a list of booleans: whether each prediction is right."""
        pairs = zip(
            self.compared["target"], self.compared["predicted"], strict=True
        )
        return [target == predicted for target, predicted in pairs]


@contextlib.contextmanager
def errors_as_damage(path: Path) -> Iterator[None]:
    """Context manager that turns errors about invalid content into `DataError`.

    The `DataError` says that the file `path` is damaged.
    """
    try:
        yield
    except _ERRORS as error:
        raise DataError(
            f"{path} is damaged: {cut(str(error) or repr(error))}. Remove it: "
            "metrics then come from result.json, and analyses that need "
            "predictions skip the run."
        ) from error


# For lists with unexpected entries, NumPy and scikit-learn raise many kinds of
# errors.
_ERRORS = (ArithmeticError, EOFError, LookupError, OSError, TypeError)
_ERRORS += (AttributeError, ValueError, zlib.error)


def save_predictions(
    run_folder: Path, split: str, head: "Head", compared: dict[str, Any]
) -> None:
    """Writes the predictions for a split.

    If they take more than 64 MiB of JSON, they are not stored, and a line is
    printed.

    Args:
        run_folder: Path of the run folder.
        split: Name of a split, or `transfer/<language>`.
        head: `Head`.
        compared: Dict of lists that the head's `compare` returned.
    """
    content = {
        "head": heads.name_of(head),
        "labels": list(head.labels),
        "rows": _lists(compared),
    }
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    content = text.encode()
    if len(content) > _LARGEST:
        print(f"Predictions of {split} are not stored: there are too many.")
        return
    path = _path(run_folder, split)
    own_files.make_folder(run_folder, *path.relative_to(run_folder).parts[:-1])
    # Without a time stamp, equal predictions give equal files.
    own_files.replace_file(path, gzip.compress(content, mtime=0))


def _lists(compared: dict[str, Any]) -> dict[str, Any]:
    return {
        name: values if isinstance(values, list) else values.tolist()
        for name, values in compared.items()
    }


def complete_predictions(
    run_folder: Any, split: str, head: Any, compared: dict[str, Any]
) -> None:
    """Stores predictions for a split if some of them are not stored yet.

    If stored predictions differ from the new ones, nothing is written, because
    the run's result was computed from the stored ones. The arguments are the
    same as in `save_predictions`.
    """
    stored = load_predictions(run_folder, split)
    before = {} if stored is None else stored.compared
    now = _lists(compared)
    if before != now and all(now.get(k) == v for k, v in before.items()):
        save_predictions(run_folder, split, head, compared)


def load_predictions(run_folder: Path, split: str) -> "Predictions | None":
    """Returns a run's `Predictions` for a split, or `None` if there are none.

    Args:
        run_folder: Path of the run folder.
        split: `"validation"`, `"test"`, `"validation_mismatched"` or
            `"transfer/<language>"`.

    Raises:
        DataError: If the file is damaged.
        UserError: If the head is unknown, because it belongs to a plug-in.
    """
    path = _path(run_folder, split)
    if not path.exists():
        return None
    with errors_as_damage(path):
        content = parse_json(_unpacked(read_file(path, _LARGEST)).decode())
        head, compared = content["head"], content["rows"]
        if not isinstance(head, str):
            raise UserError(f"its head is not a name but {shown(head)}")
        prediction_checks.check_lists(compared)
        labels = tuple(content.get("labels", ()))
    check_known("head", head, heads.HEADS, hint="Give its --plugin.")
    return Predictions(head, compared, path, labels)


def _unpacked(content: Any) -> bytes:
    """Decompresses bytes; raises a `UserError` if the output is too large.

    A small gzip file may decompress to a thousand times its size.
    """
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
        unpacked = file.read(_LARGEST + 1)
    if len(unpacked) > _LARGEST:
        raise UserError(f"it unpacks to more than {_LARGEST:,} bytes")
    return unpacked


def stored_splits(run_folder: Path) -> list[str]:
    """Returns the sorted names of the splits with stored predictions."""
    folder = Path(run_folder) / FOLDER
    return sorted(
        path.relative_to(folder).as_posix().removesuffix(_ENDING)
        for path in folder.rglob(f"*{_ENDING}")
    )


def _path(run_folder: Path, split: str) -> Path:
    return Path(run_folder) / FOLDER / f"{split}{_ENDING}"


def recompute_metrics(run_folder: Path) -> dict[Any, Any]:
    """Computes a run's metrics again from its stored predictions.

    Args:
        run_folder: Path of a finished run.

    Returns:
        Dict from split, or `transfer/<language>`, to a dict of metrics. Splits
        without stored predictions are left out. So is the loss, because it
        cannot be computed from predictions.

    Raises:
        UserError: If the run is not finished.
        DataError: If a file of predictions is damaged.
    """
    result = earlier_runs.read_result(run_folder)
    if result is None:
        raise UserError(f"{run_folder} holds no finished run.")
    metrics = {}
    for split, values in _by_split(result).items():
        stored = load_predictions(run_folder, split)
        if stored is not None:
            names = [name for name in values if name not in ("loss", "split")]
            metrics[split] = stored.metrics(names)
    return metrics


def _by_split(result: dict[str, Any]) -> dict[str, Any]:
    languages = result.get("transfer", {}).get("languages", {})
    return {
        **{s: result[s] for s in EVALUATED if s in result},
        **{f"transfer/{name}": values for name, values in languages.items()},
    }
