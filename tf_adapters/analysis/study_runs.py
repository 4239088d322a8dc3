"""The finished runs of a study as a table."""

from pathlib import Path

import pandas as pd

from tf_adapters.common.errors import UserError


def load_study_runs(folder, columns=()):
    """Returns the finished runs of a study's `runs.csv` as a `DataFrame`.

    Args:
        folder: Folder of a study.
        columns: Names of columns that must be there: settings of its grid.

    Raises:
        UserError: If the folder holds no study, no run is finished, or a column
            is missing.
    """
    path = Path(folder) / "runs.csv"
    if not path.exists():
        raise UserError(
            f"{folder} is no folder of a study: it has no runs.csv. "
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


def run_folder(study_dir, row):
    """Returns the folder of a run, or of one of the tasks of its run.

    Args:
        study_dir: Folder of a study.
        row: Row of its `runs.csv`. A run that it took from another study has
            in `folder` where that lies, as seen from `study_dir`.
    """
    own = row.get("folder")
    folder = Path(study_dir) / (
        own if isinstance(own, str) and own else row["run"]
    )
    of_task = folder / row["task"]
    return of_task if (of_task / "config.yaml").exists() else folder
