"""What a study's YAML says, read and checked key by key.

A study has these keys:

- `base`: settings of every run, nested or dotted (`train.epochs`).
- `grid`: dotted key to list of values; or a list of such grids, whose runs are
  joined.
- `where`: list of `{when: {key: value or values}, set: {key: value}}`: settings
  of the runs that match. A later entry wins over an earlier one and over
  `base`.
- `select_over`: dotted key to list of values, of which each cell of the table
  takes what is best on validation.
- `report`: see `Report`.
- `small`: what `--small` changes: values of grid keys, or other settings. It
  shows the machinery in at most an hour on two cores.
- `two_cores`: what `--two_cores` changes, likewise: at least three seeds in at
  most twelve hours on two cores.
- `paper`, `covers`, `shows`, `missing_data`, `expected`, `figures` and
  `claims`: see `paper`.
"""

import dataclasses
from pathlib import Path

from tf_adapters.common import dataclass_config
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.suggestions import check_known
from tf_adapters.config import resolve
from tf_adapters.config.presets import OFFICIAL_CONFIGS
from tf_adapters.data.rows.splits import EVALUATED
from tf_adapters.studies import paper as paper_lib
from tf_adapters.studies.settings import check_names
from tf_adapters.studies.settings import refuse_both
from tf_adapters.studies.settings import settings_of

STUDIES = OFFICIAL_CONFIGS / "studies"
# Reduced forms of a study, each a flag.
BLOCKS = ("small", "two_cores")


@dataclasses.dataclass(frozen=True)
class Report:
    """What a study's table shows.

    Attributes:
        rows: Key or keys whose values make the rows; `None` for all keys of the
            grid that are not `columns`, `seed` or selected over.
        columns: Key whose values make the columns.
        metric: Name of a metric; `None` for the first one of each task;
            `mean_metric`, the mean over validations; `loss`; `transfer/all`,
            `transfer/target`, `transfer/distant` or `transfer/<language>`.
        split: `"validation"`, `"validation_mismatched"` (MNLI) or `"test"`.
            Selection is on validation always.
    """

    rows: str | list | None = None
    columns: str = "task"
    metric: str | None = None
    split: str = "validation"


@dataclasses.dataclass(frozen=True)
class Study:
    """A study as read, all keys dotted; see the module's docstring.

    Attributes:
        base: Settings, those of `where` and `overrides` not yet applied.
        grids: List of dicts from key to values.
        where: List of pairs of dicts: what must hold, and what is then set.
        select_over: Dict from key to values.
        overrides: Settings of the block and of the command line.
        report: `Report`, its `rows` a list.
        paper: Key of `paper.PAPERS`, or `None`.
        covers: Tables and figures of the paper, a list of texts.
        shows: What they show, one sentence, or `None`.
        missing_data: List of sentences.
        expected: `paper.Expected`, or `None`.
        figures: List of `paper.Figure`.
        claims: List of `paper.Claim`.
    """

    base: dict
    grids: list
    where: list
    select_over: dict
    overrides: dict
    report: Report
    paper: str | None = None
    covers: list = dataclasses.field(default_factory=list)
    shows: str | None = None
    missing_data: list = dataclasses.field(default_factory=list)
    expected: paper_lib.Expected | None = None
    figures: list = dataclasses.field(default_factory=list)
    claims: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class _Declaration:
    grid: dict | list
    base: dict | None = None
    where: list | None = None
    select_over: dict | None = None
    report: dict | None = None
    small: dict | None = None
    two_cores: dict | None = None
    paper: str | None = None
    covers: list | None = None
    shows: str | None = None
    missing_data: list | None = None
    expected: dict | None = None
    figures: list | None = None
    claims: list | None = None


@dataclasses.dataclass(frozen=True)
class _Where:
    when: dict
    set: dict


def find_study(name):
    """Returns the YAML file of a study's name or path."""
    for path in (STUDIES / f"{name}.yaml", Path(name)):
        if path.is_file():
            return path
    known = sorted(path.stem for path in STUDIES.glob("*.yaml"))
    hint = "Or give the path of a YAML file."
    check_known("study", name, known, ConfigError, hint)


def read_study(path):
    """Returns the `Study` in a YAML file, and its blocks.

    These are a dict from "small" and "two_cores", where the file has them, to
    their settings.

    Raises:
        ConfigError: If a key is unknown, set twice, or of the wrong form.
    """
    declared = dataclass_config.from_dict(_Declaration, resolve.load_yaml(path))
    grids = declared.grid if type(declared.grid) is list else [declared.grid]
    study = Study(
        base=settings_of(declared.base or {}),
        grids=[_axes(grid) for grid in grids],
        where=[_where(entry) for entry in declared.where or []],
        select_over=_axes(declared.select_over or {}),
        overrides={},
        report=dataclass_config.from_dict(
            Report, declared.report or {}, "report."
        ),
        **paper_lib.read(declared),
    )
    for grid in study.grids:
        refuse_both(grid, "`grid`", study.select_over, "`select_over`")
        refuse_both(grid, "`grid`", study.base, "`base`")
    refuse_both(study.select_over, "`select_over`", study.base, "`base`")
    blocks = {name: getattr(declared, name) for name in BLOCKS}
    return (
        dataclasses.replace(study, report=_report(study)),
        {k: settings_of(v) for k, v in blocks.items() if v is not None},
    )


def _axes(grid):
    axes = settings_of(grid)
    for key, values in axes.items():
        if not isinstance(values, list) or not values:
            raise ConfigError(
                f"`{key}` must be a list of values, for example [0, 1, 2]. "
                f"Received: {values!r}. One value for all runs belongs in "
                "`base`."
            )
    return axes


def _where(entry):
    if not isinstance(entry, dict):
        raise ConfigError(
            "An entry of `where` reads `{when: {...}, set: {...}}`. Received: "
            f"{entry!r}"
        )
    entry = dataclass_config.from_dict(_Where, entry, "where.")
    return settings_of(entry.when), settings_of(entry.set)


def _report(study):
    report = study.report
    if report.split not in EVALUATED:
        raise ConfigError(
            f"`report.split` must be one of {', '.join(EVALUATED)}. Received: "
            f"{report.split}"
        )
    axes = list(dict.fromkeys(key for grid in study.grids for key in grid))
    rest = [key for key in axes if key not in (report.columns, "seed")]
    rows = [report.rows] if isinstance(report.rows, str) else report.rows
    rows = rest if rows is None else rows
    check_names([*rows, report.columns])
    hidden = [key for key in rest if key not in rows]
    if hidden:
        raise ConfigError(
            f"The table would mix runs of different `{hidden[0]}`. Add it to "
            "`report.rows`, or move it from `grid` to `select_over`."
        )
    return dataclasses.replace(report, rows=rows)


def override(study, block=None, flags=None):
    """Returns a study with the settings of a block and of flags applied.

    Args:
        study: `Study`.
        block: Dict of settings, from `read_study`: for a key of the grid the
            value or values that it is cut to, for any other key its value.
        flags: Dict of settings, nested or flat. They win over `base`, `where`
            and the block, and must not be keys of the grid.
    """
    block, flags = block or {}, settings_of(flags or {})
    grids = [_cut(grid, block) for grid in study.grids]
    select_over = _cut(study.select_over, block)
    for grid in grids:
        refuse_both(grid, "`grid`", flags, "a flag")
    refuse_both(select_over, "`select_over`", flags, "a flag")
    axes = {key for grid in (*grids, select_over) for key in grid}
    rest = {key: value for key, value in block.items() if key not in axes}
    return dataclasses.replace(
        study,
        grids=grids,
        select_over=select_over,
        overrides={**rest, **flags},
    )


def _cut(axes, block):
    cut = {}
    for key, values in axes.items():
        value = block.get(key, values)
        cut[key] = value if isinstance(value, list) else [value]
    return cut
