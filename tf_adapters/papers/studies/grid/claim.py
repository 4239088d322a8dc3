"""Reads a study's claims: statements of the paper that numbers can support."""

import dataclasses

from tf_adapters.common import dataclass_config
from tf_adapters.common.checks import check_known
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown
from tf_adapters.papers.studies.grid import blocks
from tf_adapters.papers.studies.grid import settings as study_settings

# Key of `Claim.printed` for the mean over all tasks of the paper.
AVERAGE = "average"


@dataclasses.dataclass(frozen=True)
class Claim:
    """A statement of the paper that numbers can support.

    Attributes:
        says: The sentence.
        higher: Settings that select the runs with the higher values. If `of` is
            set, columns and values that select rows of the figure's table.
        than: The same for the runs or rows with the lower values.
        where: Settings that hold on both sides, or `None`.
        printed: The difference that the paper prints, in points, or `None`. A
            dict has a difference for each task, and optionally one for
            `average`, see `printed_for`.
        within: Number of points. The claim then says that the two sides differ
            by less than that.
        at_most_behind: Number of points. The claim then says that the `higher`
            side is behind by less than that, or ahead.
        spreads: List of settings, such as `seed`, or one setting. The claim is
            then about how much results vary if only these settings vary.
        not_testable: Dict from a form of the study, such as `two_cores`, to the
            reason why this form cannot test the claim.
        of: Name of the figure whose table is compared, or `None` to compare
            metrics of runs.
        value: The column of the figure's table to compare, if `of` is set.
    """

    says: str
    higher: dict
    than: dict
    where: dict | None = None
    printed: float | dict | None = None
    within: float | None = None
    at_most_behind: float | None = None
    spreads: str | list | None = None
    not_testable: dict | None = None
    of: str | None = None
    value: str | None = None

    @property
    def margin(self) -> float | None:
        """The value of `within` or `at_most_behind`, or `None`."""
        return self.at_most_behind if self.within is None else self.within

    def printed_for(self, tasks: list[str]) -> float | None:
        """Returns the printed difference to compare with measured tasks.

        Args:
            tasks: The measured tasks.

        Returns:
            The mean over these tasks, if the paper prints a number for each.
            Otherwise the number for `average`, or `None`. If `printed` is one
            number, that number for any tasks.
        """
        printed = self.printed
        if not isinstance(printed, dict):
            return printed
        if tasks and all(task in printed for task in tasks):
            return sum(printed[task] for task in tasks) / len(tasks)
        return printed.get(AVERAGE)


def read_claim(values: object, figures: list[str]) -> Claim:
    """Checks a claim in a study's file, and returns it as a `Claim`.

    Args:
        values: Dict with the fields of `Claim`.
        figures: Names of the study's figures.

    Raises:
        ConfigError: If a value is malformed.
    """
    claim = dataclass_config.from_dict(Claim, values, "claims.")
    _check_printed(claim)
    _check_margins(claim)
    if claim.not_testable is not None:
        _check_forms(claim)
    if (claim.of is None) != (claim.value is None):
        raise ConfigError(
            f"The claim {shown(claim.says)} needs both `of`, the name of a "
            "figure, and `value`, a column of its table; or neither, where it "
            "is about the runs' metric."
        )
    if claim.of is None:
        return _about_runs(claim)
    if claim.spreads is not None:
        raise ConfigError(
            f"The claim {shown(claim.says)} has `spreads`, which compares "
            "metrics of runs. Leave out either `spreads` or `of`."
        )
    hint = "A figure without a `name` has the name of its `analysis`."
    check_known("figure in `claims.of`,", claim.of, figures, ConfigError, hint)
    return claim


def _about_runs(claim: Claim) -> Claim:
    spreads = claim.spreads
    spreads = [spreads] if isinstance(spreads, str) else spreads
    study_settings.check_are_settings(spreads or [])
    return dataclasses.replace(
        claim,
        higher=study_settings.settings_of(claim.higher),
        than=study_settings.settings_of(claim.than),
        where=claim.where and study_settings.settings_of(claim.where),
        spreads=spreads,
    )


def _check_printed(claim: Claim) -> None:
    printed = claim.printed
    if isinstance(printed, dict) and not all(
        type(number) in (int, float) for number in printed.values()
    ):
        raise ConfigError(
            "`claims.printed` must be a number, or a dict from tasks (or "
            f"`{AVERAGE}`) to numbers. Received: {shown(printed)}"
        )


def _check_margins(claim: Claim) -> None:
    given = [
        f"`{name}`"
        for name in ("within", "at_most_behind", "spreads")
        if getattr(claim, name) is not None
    ]
    if len(given) > 1:
        raise ConfigError(
            f"The claim {shown(claim.says)} has {' and '.join(given)}. A claim "
            "can have only one of them."
        )
    # Also refuses NaN.
    if claim.margin is not None and not claim.margin > 0:
        raise ConfigError(
            f"{given[0]} of the claim {shown(claim.says)} must be above zero. "
            f"Received: {claim.margin}"
        )


def _check_forms(claim: Claim) -> None:
    for form, reason in (claim.not_testable or {}).items():
        check_known(
            "form in `claims.not_testable`,", form, blocks.BLOCKS, ConfigError
        )
        if not isinstance(reason, str):
            raise ConfigError(
                f"`claims.not_testable.{cut(form)}` must be a text, the reason "
                f"why this form cannot test the claim. Received: "
                f"{shown(reason)}"
            )
