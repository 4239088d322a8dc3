"""Checks a study's key `report`, which defines the table of its runs."""

import dataclasses
from typing import TYPE_CHECKING
from typing import Any
from typing import Literal

from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import cut
from tf_adapters.data.rows.splits import EVALUATED
from tf_adapters.papers.studies.grid.settings import check_are_settings

if TYPE_CHECKING:
    from tf_adapters.papers.studies.grid.declaration import Study


# The key that `report.best_of` names has this value in the additional row.
BEST = "best"
# MNLI's mismatched half: a column next to `mnli` in the papers' tables.
MISMATCHED = "mnli_mismatched"
# If `report.columns` is this key, each language and average has a column.
LANGUAGES = "data.eval_languages"


@dataclasses.dataclass(frozen=True)
class Report:
    """The contents of a study's table.

    Attributes:
        rows: Key or keys whose values make the rows. `None` for all keys of the
            grid except `columns`, `seed`, and keys that are selected over.
        columns: Key whose values make the columns. `data.eval_languages` makes
            a column for each language and each average.
        metric: Name of a metric, or `None` for each task's first one. Also
            `mean_metric` for the mean over validations, `loss`, `transfer/all`,
            `transfer/target`, `transfer/distant`, `transfer/<language>`, or
            `method_report/<name>` for a value that the method reports.
        split: `"validation"`, `"validation_mismatched"` (MNLI) or `"test"`.
            Selection always uses validation.
        aggregate: How a cell summarizes its seeds: `"mean"` for the mean with
            the standard deviation, `"standard_error"` for the mean with its
            standard error, or `"best"` for the seed that is best on validation.
        best_of: Key of `rows`, or `None`. The table gets an additional row
            `best`, whose cells use the key's value that is best on validation.
    """

    rows: str | list | None = None
    columns: str = "task"
    metric: str | None = None
    split: str = "validation"
    aggregate: Literal["mean", "standard_error", "best"] = "mean"
    best_of: str | None = None


def with_report_rows(study: "Study") -> Any:
    """Checks a study's report, and replaces its `rows` by a list of keys.

    Args:
        study: `Study`.

    Raises:
        ConfigError: If the report names an unknown key or split, or if a cell
            would mix runs of different settings.
    """
    report = study.report
    if report.split not in EVALUATED:
        raise ConfigError(
            f"`report.split` must be one of {', '.join(EVALUATED)}. Received: "
            f"{cut(report.split)}"
        )
    axes = list(dict.fromkeys(key for grid in study.grids for key in grid))
    not_rows = (report.columns, "seed", *study.select_over)
    rest = [key for key in axes if key not in not_rows]
    rows = [report.rows] if isinstance(report.rows, str) else report.rows
    rows = rest if rows is None else rows
    check_are_settings([*rows, report.columns])
    hidden = [key for key in rest if key not in rows]
    if hidden:
        raise ConfigError(
            f"The table would mix runs of different `{hidden[0]}`. Add it to "
            "`report.rows`, or move it from `grid` to `select_over`."
        )
    if report.best_of not in (None, *rows):
        raise ConfigError(
            f"`report.best_of` must be one of `report.rows`: {', '.join(rows)}."
            f" Received: {cut(report.best_of)}"
        )
    report = dataclasses.replace(report, rows=rows)
    return dataclasses.replace(study, report=report)


def cell_keys(report: Any) -> list[Any]:
    """Returns the keys whose values identify a cell of the table."""
    return list(dict.fromkeys([*report.rows, report.columns]))
