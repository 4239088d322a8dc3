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
- `small`: what `--small` changes: values of grid keys, or other settings.
"""

import dataclasses
import functools
from pathlib import Path

from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common import dataclass_config
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.suggestions import check_known
from tf_adapters.config import resolve
from tf_adapters.config.presets import OFFICIAL_CONFIGS
from tf_adapters.data.rows.splits import EVALUATED

# Settings of other runs, and a method within another: one value here.
_LEAVES = ("members.settings", "method.adapter")
STUDIES = OFFICIAL_CONFIGS / "studies"


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
        overrides: Settings of `small` and of the command line.
        report: `Report`, its `rows` a list.
    """

    base: dict
    grids: list
    where: list
    select_over: dict
    overrides: dict
    report: Report


@dataclasses.dataclass(frozen=True)
class _Declaration:
    grid: dict | list
    base: dict | None = None
    where: list | None = None
    select_over: dict | None = None
    report: dict | None = None
    small: dict | None = None


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
    """Returns the `Study` in a YAML file, and its block `small` or `None`.

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
    )
    for grid in study.grids:
        refuse_both(grid, "`grid`", study.select_over, "`select_over`")
        refuse_both(grid, "`grid`", study.base, "`base`")
    refuse_both(study.select_over, "`select_over`", study.base, "`base`")
    small = declared.small
    return (
        dataclasses.replace(study, report=_report(study)),
        None if small is None else settings_of(small),
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


def settings_of(nested):
    """Returns nested or dotted settings as dotted ones, their names checked."""
    if not isinstance(nested, dict):
        raise ConfigError(
            f"Expected a mapping of settings. Received: {nested!r}"
        )
    flat = _flatten(nested)
    _check_known(flat)
    return flat


def _check_known(keys):
    known = _known_settings()
    for key in keys:
        check_known("setting", key, sorted(known), ConfigError)


def _flatten(nested, prefix=""):
    flat = {}
    for key, value in nested.items():
        inner = {f"{prefix}{key}": value}
        if isinstance(value, dict) and f"{prefix}{key}" not in _LEAVES:
            inner = _flatten(value, f"{prefix}{key}.")
        for dotted, leaf in inner.items():
            dotted = "method" if dotted == "method.name" else dotted
            if dotted in flat:
                raise ConfigError(f"`{dotted}` is set twice.")
            flat[dotted] = leaf
    return flat


def nest(flat):
    """Returns dotted settings as the nested dict that `resolve` takes."""
    nested = {}
    for key, value in flat.items():
        key = "method.name" if key == "method" else key
        for part in reversed(key.split(".")):
            value = {part: value}
        nested = resolve.merge(nested, value)
    return nested


@functools.cache
def _known_settings():
    known = set(_flatten(resolve.to_dict(resolve.resolve_config({"task": ""}))))
    for method in methods.METHODS.values():
        fields = dataclasses.fields(method)
        known.update(f"method.{field.name}" for field in fields)
    for head in heads.HEADS.values():
        fields = dataclasses.fields(head)
        known.update(f"head.{field.name}" for field in fields)
    return known


def refuse_both(first, first_name, second, second_name):
    """Raises `ConfigError` if two dicts share a key."""
    both = sorted(set(first) & set(second))
    if both:
        raise ConfigError(
            f"`{both[0]}` is set both in {first_name} and in {second_name}. "
            "Leave one of the two out."
        )


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
    _check_known([*rows, report.columns])
    hidden = [key for key in rest if key not in rows]
    if hidden:
        raise ConfigError(
            f"The table would mix runs of different `{hidden[0]}`. Add it to "
            "`report.rows`, or move it from `grid` to `select_over`."
        )
    return dataclasses.replace(report, rows=rows)


def override(study, small=None, flags=None):
    """Returns a study with the settings of `small` and of flags applied.

    Args:
        study: `Study`.
        small: Dict of settings, from `read`: for a key of the grid the value or
            values that it is cut to, for any other key its value.
        flags: Dict of settings, nested or flat. They win over `base`, `where`
            and `small`, and must not be keys of the grid.
    """
    small, flags = small or {}, settings_of(flags or {})
    grids = [_cut(grid, small) for grid in study.grids]
    select_over = _cut(study.select_over, small)
    for grid in grids:
        refuse_both(grid, "`grid`", flags, "a flag")
    refuse_both(select_over, "`select_over`", flags, "a flag")
    axes = {key for grid in (*grids, select_over) for key in grid}
    rest = {key: value for key, value in small.items() if key not in axes}
    return dataclasses.replace(
        study,
        grids=grids,
        select_over=select_over,
        overrides={**rest, **flags},
    )


def _cut(axes, small):
    cut = {}
    for key, values in axes.items():
        value = small.get(key, values)
        cut[key] = value if isinstance(value, list) else [value]
    return cut
