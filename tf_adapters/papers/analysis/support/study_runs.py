"""Loads the finished runs of a study as a table."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from tf_adapters.common.errors import UserError


def load_study_runs(folder: Path, columns: Sequence[str] = ()) -> Any:
    """Returns the finished runs of a study's `runs.csv` as a `DataFrame`.

    Args:
        folder: Folder of a study.
        columns: Names of required columns: settings in the study's grid.

    Raises:
        UserError: If the folder holds no study, no run is finished, or a column
            is missing.
    """
    path = Path(folder) / "runs.csv"
    if not path.exists():
        raise UserError(
            f"{folder} is not a study's folder: it has no runs.csv. "
            "`tf-adapters --study=<name> --report` writes it."
        )
    runs = pd.read_csv(path, keep_default_na=True)
    runs = runs[runs.state == "finished"].reset_index(drop=True)
    if runs.empty:
        raise UserError(f"No run of the study in {folder} is finished.")
    for column in columns:
        if column not in runs:
            raise UserError(
                f"{path} has no column `{column}`: the study's grid must have "
                f"it. Columns: {', '.join(runs.columns)}"
            )
    return runs


def run_folder(study_dir: Path, row: dict[str, Any]) -> Path:
    """Returns the folder of a run, which can be in another study's folder.

    Args:
        study_dir: Folder of the study.
        row: Row of the study's `runs.csv` as a dict.
    """
    # Version 0.1.0 wrote no column `folder`; runs were in the study's folder.
    return Path(study_dir) / row.get("folder", row["run"])
