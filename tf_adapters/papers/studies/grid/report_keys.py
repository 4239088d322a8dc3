"""What a study's key `report` says: which table is made of its runs."""

import dataclasses

from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import cut
from tf_adapters.data.rows.splits import EVALUATED
from tf_adapters.papers.studies.grid.settings import check_are_settings

# The value of `report.best_of` in its further row.
BEST = "best"
# MNLI's mismatched half: a column next to `mnli` in the papers' tables.
MISMATCHED = "mnli_mismatched"
# As `report.columns`: a column for each language, and for averages over them.
LANGUAGES = "data.eval_languages"


@dataclasses.dataclass(frozen=True)
class Report:
    """What a study's table shows.

    Attributes:
        rows: Key or keys whose values make the rows; `None` for all keys of the
            grid that are not `columns`, `seed` or selected over.
        columns: Key whose values make the columns; of `data.eval_languages`
            each language has one, and so have the averages over them.
        metric: Name of a metric; `None` for the first one of each task;
            `mean_metric`, the mean over validations; `loss`; `transfer/all`,
            `transfer/target`, `transfer/distant` or `transfer/<language>`; or
            `method_report/<name>`, what a method says of itself.
        split: `"validation"`, `"validation_mismatched"` (MNLI) or `"test"`.
            Selection is on validation always.
        best_of: Key of `rows`, or `None`. The table has one more row for it,
            `best`, whose cells take the value that is best on validation.
    """

    rows: str | list | None = None
    columns: str = "task"
    metric: str | None = None
    split: str = "validation"
    best_of: str | None = None


def with_report_rows(study):
    """Returns a study whose report has its rows as a list.

    Args:
        study: `Study`.

    Raises:
        ConfigError: If the report names an unknown key or split, or would mix
            runs.
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


def cell_keys(report):
    """Returns the keys whose values make a cell of the table."""
    return list(dict.fromkeys([*report.rows, report.columns]))
