"""The lines that a study prints while it trains its runs."""

from __future__ import annotations

from collections.abc import Sequence
import time
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.runs import earlier_runs

if TYPE_CHECKING:
    from pathlib import Path

    from tf_adapters.launch.planned_run import Run


def what_is_there(found: Any, folder: Path) -> str:
    """Returns a line that says how many of a study's runs are finished.

    The line also says how many of these runs are in the folders of other
    studies, and names the studies.

    Args:
        found: Dict from the id of each run to its folder, or to `None` if the
            run is not finished.
        folder: Path of the study's folder.
    """
    finished = [path for path in found.values() if path is not None]
    words = (
        f"{counted(len(found), 'run')}, {len(finished)} of them "
        f"finished, in {folder}"
    )
    others = sorted(
        path.parent.name for path in finished if path.parent != folder
    )
    if not others:
        return words
    names = ", ".join(dict.fromkeys(others))
    return f"{words}; {len(others)} of the finished ones come from {names}"


def warn_of_other_data(runs: Sequence[Run], found: Any) -> None:
    """Prints a line for each finished run that used another data folder.

    Args:
        runs: List of `Run`.
        found: See `what_is_there`.
    """
    for run in runs:
        if found[run.id] is None:
            continue
        saved = earlier_runs.declared_config(found[run.id])
        if saved and saved.data.data_dir != run.config.data.data_dir:
            where = saved.data.data_dir or "TensorFlow Datasets"
            print(
                f"{run.id} is kept, but it read its data from {where}. For "
                "other data give another --model_dir.",
                flush=True,
            )


class ProgressLines:
    """Formats one line for each run, with an estimate of the time left.

    Args:
        total: Number of runs in the study.
        missing: Number of runs that are still to be trained.
    """

    def __init__(self, total: int, missing: int) -> None:
        self.total = total
        self.missing = missing
        self.started = time.perf_counter()
        self.done = 0

    def line(self, outcome: Any) -> str:
        """Returns the line for the `RunOutcome` of a run that has just ended.

        Must be called once for each run that is trained.
        """
        self.done += 1
        number = self.total - self.missing + self.done
        words = f"[{number} of {self.total}] {outcome.run.id}: "
        if outcome.error:
            failed = "" if outcome.is_elsewhere else "FAILED, "
            words += f"{failed}{outcome.error}"
        else:
            metric = outcome.run.metric
            # The metric may not be computed on the validation split. Then
            # only the study's table shows it.
            value = outcome.result["validation"].get(metric)
            words += "finished" if value is None else f"{metric} {value:.4f}"
        words += f", {outcome.seconds:.0f} s"
        left = self.missing - self.done
        if not left:
            return words
        elapsed = time.perf_counter() - self.started
        return f"{words}, about {_duration(left * elapsed / self.done)} left"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def counted(number: int, name: str) -> str:
    """Returns a count and its noun, such as `1 run` or `1,200 runs`."""
    return f"{number:,} {name}{'' if number == 1 else 's'}"
