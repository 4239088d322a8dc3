"""Reads a study's declarations about a paper: numbers, pictures and claims.

- `paper`, `covers`: the paper, and the paper's names of the tables and figures
  that the study makes.
- `shows`: one sentence that says what the paper's table or figure shows.
- `missing_data`: sentences that say which data is missing, and where to get it.
- `expected`: the paper's printed numbers, see `Expected`.
- `figures`: pictures that the report makes from finished runs, see `Figure`.
- `claims`: statements of the paper that are tested, see `claim.Claim`.

Settings that select runs are a dict from a setting to its value, or to a list
of possible values.
"""

import dataclasses
import re
from typing import Any

from tf_adapters.common import dataclass_config
from tf_adapters.common.checks import check_known
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown
from tf_adapters.papers.studies.grid import claim as claim_lib
from tf_adapters.papers.studies.grid import settings as study_settings

PAPERS = {
    "houlsby2019": "Houlsby et al. 2019",
    "pfeiffer2021": "Pfeiffer et al. 2021",
    "adapterbias": "AdapterBias",
    "he2021": "He et al. 2021",
    "han2021": "Han et al. 2021",
}
# Name of the column with a row's mean.
AVERAGE = claim_lib.AVERAGE


@dataclasses.dataclass(frozen=True)
class ExpectedRow:
    """A row of the paper's table, in the units of the paper.

    Attributes:
        runs: Settings that select the runs of this row.
        values: List with a number or `None` for each of `Expected.columns`.
        errors: The printed spread of each value, or `None`.
    """

    runs: dict
    values: list
    errors: list | None = None


@dataclasses.dataclass(frozen=True)
class Expected:
    """The numbers that a table of the paper prints.

    Attributes:
        columns: Values of the study's `report.columns`, or `"average"`.
        rows: List of `ExpectedRow`.
    """

    columns: list
    rows: list


@dataclasses.dataclass(frozen=True)
class Figure:
    """A picture of the study's runs.

    Attributes:
        analysis: Name of an analysis, as in `tf-adapters analyse <name>`.
        options: Dict of the analysis's flags.
        runs: Settings that select the runs to read, or `None` for all.
        name: Name of the figure's files, without suffix. Defaults to the name
            of the analysis.
    """

    analysis: str
    options: dict | None = None
    runs: dict | None = None
    name: str | None = None


def read_paper_keys(declared: Any) -> dict[str, Any]:
    """Returns a dict with the fields of a `Study` that describe its paper.

    Args:
        declared: Object with an attribute for each key in the docstring of this
            module. The attribute is `None` if the file lacks the key.

    Raises:
        ConfigError: If a value is malformed.
    """
    if declared.paper is not None:
        check_known("paper", declared.paper, PAPERS, ConfigError)
    elif declared.covers:
        raise ConfigError(
            "`covers` needs `paper`, the paper that its tables and figures "
            "are in."
        )
    figures = [
        _figure(dataclass_config.from_dict(Figure, entry, "figures."))
        for entry in declared.figures or []
    ]
    _check_names([figure.name for figure in figures])
    return {
        "paper": declared.paper,
        "covers": _texts("covers", declared.covers),
        "shows": declared.shows,
        "missing_data": _texts("missing_data", declared.missing_data),
        "expected": _expected(declared.expected),
        "figures": figures,
        "claims": [
            claim_lib.read_claim(values, [figure.name for figure in figures])
            for values in declared.claims or []
        ],
    }


def _texts(key: Any, values: Any) -> list[Any]:
    for value in values or []:
        if not isinstance(value, str) or not value.strip():
            raise ConfigError(
                f"`{key}` must be a list of texts. Received in it: "
                f"{shown(value)}"
            )
    return list(values or [])


def _figure(figure: Any) -> Any:
    return dataclasses.replace(
        figure,
        options=figure.options or {},
        runs=_runs(figure.runs),
        name=figure.name or figure.analysis,
    )


def _runs(settings: Any) -> Any:
    return None if settings is None else study_settings.settings_of(settings)


def _check_names(names: Any) -> None:
    for name in names:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name):
            raise ConfigError(
                "`figures.name` must be the name of a file without ending, of "
                f"letters, digits, `_`, `.` and `-`. Received: {shown(name)}"
            )
        if names.count(name) > 1:
            raise ConfigError(
                f"Two figures are called `{cut(name)}`. Give each a `name`."
            )


def _expected(values: Any) -> "Expected | None":
    if values is None:
        return None
    declared = dataclass_config.from_dict(Expected, values, "expected.")
    rows = [_expected_row(row, declared.columns) for row in declared.rows]
    return Expected(declared.columns, rows)


def _expected_row(row: Any, columns: Any) -> "ExpectedRow":
    if not isinstance(row, dict) or "values" not in row:
        raise ConfigError(
            "A row of `expected.rows` reads `{<setting>: <value>, ..., values: "
            f"[...]}}`. Received: {shown(row)}"
        )
    runs = {k: v for k, v in row.items() if k not in ("values", "errors")}
    runs = study_settings.settings_of(runs)
    for key in ("values", "errors"):
        _check_numbers(f"`{key}` of the row {runs}", row.get(key), columns)
    return ExpectedRow(runs, row["values"], row.get("errors"))


def _check_numbers(what: str, numbers: Any, columns: Any) -> None:
    if numbers is None and what.startswith("`errors`"):
        return
    if not isinstance(numbers, list) or len(numbers) != len(columns):
        raise ConfigError(
            f"{what} of `expected` must be a list of {len(columns)}, one for "
            f"each of `expected.columns`. Received: {shown(numbers)}"
        )
    for number in numbers:
        if number is not None and type(number) not in (int, float):
            raise ConfigError(
                f"{what} of `expected` must hold numbers or null. Received in "
                f"it: {shown(number)}"
            )
