"""Loads finished runs for analyses, one at a time."""

from collections.abc import Iterable
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

import pandas as pd

from tf_adapters.common.errors import ConfigError
from tf_adapters.papers.analysis.support.analysis import Analysis

if TYPE_CHECKING:
    from tf_adapters.config.settings import Config
    from tf_adapters.runs.experiment import Experiment
    from tf_adapters.tasks.task import Task


@dataclasses.dataclass(frozen=True)
class TrainedRun:
    """Configuration, task and rows of a finished run.

    Attributes:
        folder: Path of the run folder.
        config: `Config`.
        task: `Task`.
        rows: Dict from split to rows.
    """

    folder: Path
    config: "Config"
    task: "Task"
    rows: dict[str, list[dict[str, Any]]]

    @property
    def label(self) -> Any:
        """Label in pictures: the name of the method."""
        from tf_adapters import methods

        return methods.name_of(self.config.method)

    def experiment(self, **changes: Any) -> "Experiment":
        """Returns an `Experiment` with the run's trained adapter.

        Args:
            **changes: Fields of the configuration to replace.
        """
        from tf_adapters.runs.experiment import Experiment

        config = dataclasses.replace(self.config, **changes)
        return Experiment(config, self.task, self.folder / "adapter")


def load_run(folder: Path) -> "TrainedRun":
    """Returns the `TrainedRun` in a folder.

    Raises:
        ConfigError: If the folder does not hold a run.
    """
    from tf_adapters.config import resolve
    from tf_adapters.runs import task_data

    path = Path(folder) / "config.yaml"
    if not path.exists():
        raise ConfigError(
            f"{folder} is not a run folder: it has no config.yaml. Give the "
            "--model_dir that a run was trained with."
        )
    config = resolve.resolve_config(resolve.load_for_one_machine(path))
    data = task_data.load_task_data(config)
    return TrainedRun(Path(folder), config, data.task, data.rows)


class RunsAnalysis(Analysis):
    """Base class of analyses that compute the rows of a table run by run."""

    reads = "model_dirs"
    # Columns of the table. The first one is the run's folder.
    columns = ("run",)

    def table(self, options: Any) -> pd.DataFrame:
        rows = []
        for folder in options.folders:
            run = load_run(folder)
            rows += [(str(folder), *row) for row in self.rows(run, options)]
        return pd.DataFrame(rows, columns=self.columns)

    def rows(self, run: Any, options: Any) -> Iterable[tuple[Any, ...]]:
        """Returns the table's rows for a `TrainedRun`, without column `run`."""
        raise NotImplementedError
