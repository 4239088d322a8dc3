"""Loads the finished runs of a study as a table."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.settings_text import load_setting
from tf_adapters.common.settings_text import load_yaml

# Columns that each study has, with the settings of the grid between them.
_NEEDED = ("state", "metric")


def load_study_runs(folder: Path, columns: Sequence[str] = ()) -> Any:
    """Returns the finished runs of a study's `runs.csv` as a `DataFrame`.

    Args:
        folder: Folder of a study.
        columns: Names of required columns: settings in the study's grid, or
            settings of all its runs, which are read from their `config.yaml`.

    Raises:
        UserError: If the folder holds no study, `runs.csv` is damaged, no run
            is finished, or a column is missing.
    """
    path = Path(folder) / "runs.csv"
    if not path.exists():
        raise UserError(
            f"{folder} is not a study's folder: it has no runs.csv. "
            "`tf-adapters --study=<name> --report` writes it."
        )
    runs = _read(path)
    runs = runs[runs.state == "finished"].reset_index(drop=True)
    if runs.empty:
        raise UserError(f"No run of the study in {folder} is finished.")
    for column in columns:
        if column not in runs:
            values = [
                _setting(run_folder(folder, row), column)
                for _, row in runs.iterrows()
            ]
            if None in values:
                raise UserError(
                    f"{path} has no column `{column}`: the study's grid must "
                    f"have it. Columns: {', '.join(runs.columns)}"
                )
            runs.insert(runs.columns.get_loc("metric"), column, values)
    return runs


def _setting(folder: Path, name: str) -> Any:
    """Returns a setting of the run in a folder, or `None` if it is unknown."""
    path = Path(folder) / "config.yaml"
    if not path.exists():
        return None
    key = "method.name" if name == "method" else name
    value = read_setting(path, key, default=None)
    return Path(value).name if value and name == "encoder" else value


def read_setting(path: Path, name: str, **default: Any) -> Any:
    """Returns a setting of a run; a list, such as of blocks, as its text.

    Args:
        path: Path of the run's `config.yaml`.
        name: Dotted name of the setting.
        **default: `default`, the value if the file lacks the setting. If not
            given, a missing setting is an error.

    Raises:
        ConfigError: If the file cannot be read, or has no such value.
    """
    value: Any = load_yaml(path)
    for key in name.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    # Rows are grouped by settings, and lists cannot be.
    if isinstance(value, list):
        return str(value)
    return load_setting(path, name, **default)


def _read(path: Path) -> pd.DataFrame:
    try:
        runs = pd.read_csv(path, keep_default_na=True)
    except ValueError as error:
        raise UserError(f"{path} is damaged: {cut(error)}") from error
    lacking = [name for name in _NEEDED if name not in runs]
    if lacking:
        raise UserError(
            f"{path} has no column `{lacking[0]}`, which a study's report "
            "writes. `tf-adapters --study=<name> --report` writes it again."
        )
    return runs


def with_value(runs: pd.DataFrame, column: str, folder: Path) -> pd.DataFrame:
    """Returns the runs that have a value in a column, such as a split.

    Args:
        runs: `DataFrame` from `load_study_runs`.
        column: Name of the column.
        folder: Folder of the study, for the error message.

    Raises:
        UserError: If no run has a value in the column.
    """
    if column not in runs or runs[column].isna().all():
        raise UserError(f"No finished run in {folder} has {column}.")
    return runs[runs[column].notna()]


def check_differ_in_seed(runs: pd.DataFrame, keys: Sequence[str]) -> None:
    """Raises `UserError` if runs to average differ in more than the seed.

    Args:
        runs: `DataFrame` from `load_study_runs`.
        keys: Names of columns. Runs with equal values of them are averaged.
    """
    names = list(runs.columns)
    settings = names[names.index("state") + 1 : names.index("metric")]
    groups = runs.groupby(list(keys), dropna=False)
    for name in settings:
        if name in ("seed", *keys):
            continue
        if (groups[name].nunique(dropna=False) > 1).any():
            raise UserError(
                f"The study has runs of the same {', '.join(keys)} that differ "
                f"in `{name}`. Their mean says little: name the setting in a "
                "flag of the analysis, or in the `runs` of the study's figure."
            )


def run_folder(study_dir: Path, row: dict[str, Any]) -> Path:
    """Returns the folder of a run, which can be in another study's folder.

    Args:
        study_dir: Folder of the study.
        row: Row of the study's `runs.csv` as a dict.
    """
    # Version 0.1.0 wrote no column `folder`; runs were in the study's folder.
    return Path(study_dir) / row.get("folder", row["run"])
