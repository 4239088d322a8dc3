"""Applies reduced forms, such as `small`, and flags to a study's settings."""

import dataclasses
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.errors import ConfigError
from tf_adapters.papers.studies.grid import report_keys
from tf_adapters.papers.studies.grid.settings import refuse_both
from tf_adapters.papers.studies.grid.settings import settings_of

if TYPE_CHECKING:
    from tf_adapters.papers.studies.grid.declaration import Study


# Names of the reduced forms. Each is a key of the study's file and a flag.
BLOCKS = ("small", "two_cores", "one_gpu")


@dataclasses.dataclass(frozen=True)
class Block:
    """A reduced form of a study, such as `small`.

    Attributes:
        settings: Dict of settings. A key of the grid has the value or values
            that remain; any other key has the value that all runs use.
        grids: List of dicts that replace the study's grids, or `None`.
        select_over: List of the keys whose best value is selected by the
            validation metric, in at least one of these grids.
        where: Entries of `where` that are added after the study's entries and
            override them.
        report: Dict of fields of `Report` that replace the study's fields.
    """

    settings: dict = dataclasses.field(default_factory=dict)
    grids: list | None = None
    select_over: list = dataclasses.field(default_factory=list)
    where: list = dataclasses.field(default_factory=list)
    report: dict = dataclasses.field(default_factory=dict)


def with_block(
    study: "Study",
    block: Block | None = None,
    flags: dict[str, Any] | None = None,
) -> Any:
    """Applies a reduced form, and the settings of flags, to a study.

    Args:
        study: `Study`.
        block: `Block`, the reduced form, from `read_study`.
        flags: Dict of settings, nested or flat. They override `base`, `where`
            and the block, and must not be keys of the grid.
    """
    block, flags = block or Block(), settings_of(flags or {})
    if block.grids is not None:
        study = _with_grids(study, block)
    grids = [_cut(grid, block.settings) for grid in study.grids]
    for grid in grids:
        refuse_both(
            {key: grid[key] for key in study.select_over if key in grid},
            "`select_over`",
            flags,
            "a flag",
        )
        refuse_both(grid, "`grid`", flags, "a flag")
    axes = {key for grid in grids for key in grid}
    rest = {k: v for k, v in block.settings.items() if k not in axes}
    study = dataclasses.replace(
        study,
        grids=grids,
        where=[*study.where, *block.where],
        overrides={**rest, **flags},
        report=dataclasses.replace(study.report, **block.report),
    )
    return report_keys.with_report_rows(study)


def _with_grids(study: "Study", block: Any) -> Any:
    """Replaces a study's grids by the grids of its reduced form `block`.

    Settings in the study's `where` that are keys of the new grids are dropped.
    """
    axes = {key for grid in block.grids for key in grid}
    where = [
        (when, {key: value for key, value in own.items() if key not in axes})
        for when, own in study.where
    ]
    return dataclasses.replace(
        study, grids=block.grids, select_over=block.select_over, where=where
    )


def _cut(axes: Any, block: Any) -> dict[str, Any]:
    cut = {}
    for key, values in axes.items():
        value = block.get(key, values)
        if value == []:
            raise ConfigError(
                f"`{key}` of a reduced form is an empty list, so no run is "
                "left. Give the values that remain."
            )
        cut[key] = value if isinstance(value, list) else [value]
    return cut
