"""What a run predicted, in small files beside its result.

`predictions/<split>.json.gz` holds the name of the head and lists with an entry
for each row, from which every metric of the result is computed again, without a
model and without the data, and the names of the classes, if it has any.
"""

import dataclasses
import gzip
import json
from pathlib import Path

from tf_adapters import heads
from tf_adapters.common.errors import DataError
from tf_adapters.common.errors import cut
from tf_adapters.common.suggestions import check_known
from tf_adapters.common.text_files import parse_json
from tf_adapters.data.rows.splits import EVALUATED
from tf_adapters.runs import earlier_runs

FOLDER = "predictions"
_ENDING = ".json.gz"


@dataclasses.dataclass(frozen=True)
class Predictions:
    """What a run predicted of a split.

    Attributes:
        head: Name of the head.
        compared: Dict of lists with an entry for each row, see `Head.compare`.
        labels: Class names in the order of their ids; empty without classes,
            and in files of earlier versions.
    """

    head: str
    compared: dict
    labels: tuple[str, ...] = ()

    def __len__(self):
        return len(self.compared["predicted"])

    def metrics(self, names):
        """Returns a dict from names of metrics to those of the split."""
        return heads.HEADS[self.head].score(names, self.compared)

    def resample(self, name):
        """Returns a function of draws of the rows, see `Head.resample`."""
        return heads.HEADS[self.head].resample(name, self.compared)


def save_predictions(run_folder, split, head, compared):
    """Writes what was predicted of a split.

    Args:
        run_folder: Path.
        split: Name of a split, or `transfer/<language>`.
        head: `Head`.
        compared: What `compare` of the head returned.
    """
    content = {
        "head": heads.name_of(head),
        "labels": list(head.labels),
        "rows": _lists(compared),
    }
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    path = _path(run_folder, split)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Equal predictions are equal files: no time within.
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def _lists(compared):
    return {
        name: values if isinstance(values, list) else values.tolist()
        for name, values in compared.items()
    }


def complete_predictions(run_folder, split, head, compared):
    """Writes predictions if a run has none of a split, or no probabilities.

    Stored predictions that differ from these remain: the result is theirs.
    Arguments are those of `save_predictions`.
    """
    stored = load_predictions(run_folder, split)
    before = {} if stored is None else stored.compared
    now = _lists(compared)
    if before != now and all(now.get(k) == v for k, v in before.items()):
        save_predictions(run_folder, split, head, compared)


def load_predictions(run_folder, split):
    """Returns the `Predictions` of a run on a split, `None` if it has none.

    Args:
        run_folder: Path.
        split: `"validation"`, `"test"`, `"validation_mismatched"` or
            `"transfer/<language>"`.

    Raises:
        DataError: If the file is damaged.
        UserError: If its head is not known: a plug-in's.
    """
    path = _path(run_folder, split)
    if not path.exists():
        return None
    try:
        content = parse_json(gzip.decompress(path.read_bytes()).decode())
        head, compared = content["head"], content["rows"]
        lengths = {
            len(compared[key]) for key in ("target", "predicted", *compared)
        }
        labels = tuple(content.get("labels", ()))
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{path} is damaged: {cut(error)}. Remove it: metrics are those of "
            "result.json then, and what needs predictions leaves the run out."
        ) from error
    if len(lengths) > 1:
        raise DataError(
            f"{path} is damaged: its targets, predictions and probabilities "
            f"should be of equally many rows, and are of {min(lengths)} to "
            f"{max(lengths)}."
        )
    check_known("head", head, heads.HEADS, hint="Give its --plugin.")
    return Predictions(head, compared, labels)


def stored_splits(run_folder):
    """Returns the splits that a run has predictions of, sorted by name."""
    folder = Path(run_folder) / FOLDER
    return sorted(
        path.relative_to(folder).as_posix().removesuffix(_ENDING)
        for path in folder.rglob(f"*{_ENDING}")
    )


def _path(run_folder, split):
    return Path(run_folder) / FOLDER / f"{split}{_ENDING}"


def recompute_metrics(run_folder):
    """Returns the metrics of a result again, from what was predicted.

    Args:
        run_folder: Path of a finished run.

    Returns:
        Dict from split, or `transfer/<language>`, to a dict of metrics; without
        those splits that have no stored predictions. The loss is no metric of
        predictions.
    """
    result = earlier_runs.read_result(run_folder)
    metrics = {}
    for split, values in _by_split(result).items():
        stored = load_predictions(run_folder, split)
        if stored is not None:
            names = [name for name in values if name not in ("loss", "split")]
            metrics[split] = stored.metrics(names)
    return metrics


def _by_split(result):
    languages = result.get("transfer", {}).get("languages", {})
    return {
        **{s: result[s] for s in EVALUATED if s in result},
        **{f"transfer/{name}": values for name, values in languages.items()},
    }
