"""Reads and checks a study's YAML file.

A study has these keys:

- `base`: settings of every run, nested or dotted (`train.epochs`).
- `grid`: dict from dotted key to list of values, or a list of such grids, whose
  runs are joined.
- `where`: list of `{when: {key: value or values}, set: {key: value}}`, settings
  of the runs that match. A later entry overrides earlier ones and `base`.
- `select_over`: dict from dotted key to list of values. Each cell of the table
  uses the value that is best on validation. A grid may have its own
  `select_over`, which replaces this one.
- `report`: see `report_keys`.
- `small`: what `--small` changes: values of grid keys, other settings, and
  optionally more entries of `where` and keys of `report`. The small study
  demonstrates the study in at most an hour on two cores.
- `two_cores`: what `--two_cores` changes, with the same keys as `small`. The
  changed study has at least three seeds and takes at most twelve hours on two
  cores.
- `one_gpu`: what `--one_gpu` changes, with the same keys. The changed study has
  twenty seeds, and its runs can be trained with `--executor=jax`. Each of the
  three forms may contain a `grid`, for example to select over other values.
  That grid replaces the study's own grid, and its values override `base` and
  `where`.
- `paper`, `covers`, `shows`, `missing_data`, `expected`, `figures` and
  `claims`: see `paper` and `claim`.
"""

import dataclasses
from pathlib import Path
from typing import Any

from tf_adapters.common import dataclass_config
from tf_adapters.common.checks import check_known
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown
from tf_adapters.config import resolve
from tf_adapters.config.presets import OFFICIAL_CONFIGS
from tf_adapters.papers.studies.grid import paper as paper_lib
from tf_adapters.papers.studies.grid import report_keys
from tf_adapters.papers.studies.grid.blocks import BLOCKS
from tf_adapters.papers.studies.grid.blocks import Block
from tf_adapters.papers.studies.grid.report_keys import Report
from tf_adapters.papers.studies.grid.settings import check_mapping
from tf_adapters.papers.studies.grid.settings import refuse_both
from tf_adapters.papers.studies.grid.settings import settings_of

STUDIES = OFFICIAL_CONFIGS / "studies"


@dataclasses.dataclass(frozen=True)
class Study:
    """The contents of a study's file, with settings as dotted keys.

    Attributes:
        base: Settings of every run.
        grids: List of dicts from key to values, including the keys of
            `select_over`.
        where: List of pairs of dicts: the condition, and the settings of the
            runs that meet it.
        select_over: List of the keys whose best value is selected by the
            validation metric, in at least one grid.
        overrides: Settings of the reduced form and of the command line.
        report: `Report`. Its `rows` are a list.
        paper: Key of `paper.PAPERS`, or `None`.
        covers: List with the names of tables and figures in the paper.
        shows: Sentence that says what these items show, or `None`.
        missing_data: List of sentences about unavailable data.
        expected: `paper.Expected`, or `None`.
        figures: List of `paper.Figure`.
        claims: List of `claim.Claim`.
        form: Name of the reduced form that was applied, or `None`.
    """

    base: dict
    grids: list
    where: list
    select_over: list
    overrides: dict
    report: Report
    paper: str | None = None
    covers: list = dataclasses.field(default_factory=list)
    shows: str | None = None
    missing_data: list = dataclasses.field(default_factory=list)
    expected: paper_lib.Expected | None = None
    figures: list = dataclasses.field(default_factory=list)
    claims: list = dataclasses.field(default_factory=list)
    form: str | None = None


@dataclasses.dataclass(frozen=True)
class _Declaration:
    grid: dict | list
    base: dict | None = None
    where: list | None = None
    select_over: dict | None = None
    report: dict | None = None
    small: dict | None = None
    two_cores: dict | None = None
    one_gpu: dict | None = None
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


def find_study(name: str) -> Any:
    """Finds the YAML file of a study by its name or path."""
    for path in (STUDIES / f"{name}.yaml", Path(name)):
        if path.is_file():
            return path
    if Path(name).suffix in (".yaml", ".yml"):
        raise ConfigError(f"There is no study file {cut(name)}.")
    known = sorted(path.stem for path in STUDIES.glob("*.yaml"))
    hint = "Or give the path of a YAML file."
    check_known("study", name, known, ConfigError, hint)
    return None


def read_study(path: Path) -> tuple[Any, dict[Any, Any]]:
    """Returns the `Study` in a YAML file, and a dict of its reduced forms.

    The keys of the dict are those of `BLOCKS` that the file has. The values are
    `Block`s.

    Raises:
        ConfigError: If a key is unknown, set twice, or malformed.
    """
    declared = dataclass_config.from_dict(_Declaration, resolve.load_yaml(path))
    grids = _grids(declared.grid)
    base = settings_of(declared.base or {})
    common = _axes(declared.select_over or {})
    refuse_both(common, "`select_over`", base, "`base`")
    axes, selected = _axes_of(grids, common, base)
    study = Study(
        base=base,
        grids=axes,
        where=_entries_of_where(declared.where),
        select_over=selected,
        overrides={},
        report=dataclass_config.from_dict(
            Report, declared.report or {}, "report."
        ),
        **paper_lib.read_paper_keys(declared),
    )
    blocks = {name: getattr(declared, name) for name in BLOCKS}
    return (
        report_keys.with_report_rows(study),
        {k: _block(v) for k, v in blocks.items() if v is not None},
    )


def _grids(grid: Any) -> Any:
    grids = [grid] if isinstance(grid, dict) else grid
    if not grids:
        raise ConfigError(
            "`grid` must be a mapping from settings to lists of values, or a "
            f"list of at least one. Received: {shown(grid)}"
        )
    return grids


def _axes_of(grids: Any, common: Any, base: Any) -> tuple[list[Any], list[Any]]:
    """Returns a list of grids, and a list of all keys that they select over.

    A grid is a dict from key to values. `common` is the study's `select_over`,
    and `base` its `base`.
    """
    axes, selected = zip(*(_grid(g, common, base) for g in grids), strict=True)
    return list(axes), list(dict.fromkeys(key for s in selected for key in s))


def _grid(entry: Any, common: Any, base: Any) -> tuple[dict[str, Any], Any]:
    """Returns a grid, and the part of it that belongs to `select_over`.

    Both are dicts from key to values.
    """
    check_mapping(entry)
    own = {k: v for k, v in entry.items() if k != "select_over"}
    axes = _axes(own)
    selected = common
    if "select_over" in entry:
        selected = _axes(entry["select_over"])
    refuse_both(axes, "`grid`", selected, "`select_over`")
    refuse_both(axes, "`grid`", base, "`base`")
    refuse_both(selected, "`select_over`", base, "`base`")
    return {**axes, **selected}, selected


def _block(values: Any) -> Block:
    check_mapping(values)
    apart = ("grid", "where", "report")
    settings = {k: v for k, v in values.items() if k not in apart}
    report = values.get("report")
    report = {} if report is None else report
    dataclass_config.from_dict(Report, report, "report.")
    where = _entries_of_where(values.get("where"))
    settings = settings_of(settings)
    for when, own in where:
        refuse_both(settings, "the block", own, f"its `where` for {when}")
    grids, selected = None, []
    if values.get("grid") is not None:
        grids, selected = _axes_of(_grids(values["grid"]), {}, {})
        for grid in grids:
            refuse_both(settings, "the block", grid, "its `grid`")
    return Block(settings, grids, selected, where, report)


def _axes(grid: Any) -> Any:
    axes = settings_of(grid)
    for key, values in axes.items():
        if not isinstance(values, list) or not values:
            raise ConfigError(
                f"`{key}` must be a list of one or more values, for example "
                f"[0, 1, 2]. Received: {shown(values)}. One value for all runs "
                "belongs in `base`."
            )
    return axes


def _entries_of_where(where: Any) -> list[Any]:
    """Returns the entries of `where` as a list of `(when, set)`."""
    if not isinstance(where, list | None):
        raise ConfigError(
            "`where` must be a list of entries `{when: {...}, set: {...}}`. "
            f"Received: {shown(where)}"
        )
    return [_where(entry) for entry in where or []]


def _where(entry: Any) -> tuple[Any, Any]:
    if not isinstance(entry, dict):
        raise ConfigError(
            "An entry of `where` reads `{when: {...}, set: {...}}`. Received: "
            f"{shown(entry)}"
        )
    entry = dataclass_config.from_dict(_Where, entry, "where.")
    return settings_of(entry.when), settings_of(entry.set)
