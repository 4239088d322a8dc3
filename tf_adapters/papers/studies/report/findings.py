"""What a study finds: printed beside measured, verdicts on claims, pictures."""

import collections
import dataclasses

from tf_adapters.papers.studies.claims import claims
from tf_adapters.papers.studies.claims import printed
from tf_adapters.papers.studies.report import markdown
from tf_adapters.papers.studies.report import report as study_report


@dataclasses.dataclass(frozen=True)
class Findings:
    """What a study finds beyond its table.

    Attributes:
        beside: List of `printed.Beside`.
        verdicts: List of `claims.Verdict`.
        pictures: List of `figures.Made`.
    """

    beside: list
    verdicts: list
    pictures: list


def find(study, runs, rows, folder, pictures):
    """Returns the `Findings` of a study.

    Args:
        study: `Study`.
        runs: List of `Run`.
        rows: List of dicts, `Tables.runs`.
        folder: The study's folder.
        pictures: List of `figures.Made`.
    """
    chosen, all_cells = (
        study_report.chosen_rows(rows, study.report, study.select_over, further)
        for further in (False, True)
    )
    tables = collections.defaultdict(list)
    for picture in pictures:
        tables[picture.figure].append(picture.csv)
    return Findings(
        printed.beside(study, runs, all_cells),
        claims.judge(study, runs, chosen, folder, tables),
        pictures,
    )


def in_markdown(study, findings):
    """Returns the sections that follow a study's table, as one text."""
    return "\n".join(_sections(study, findings))


def _sections(study, findings):
    if findings.beside:
        yield from ("", "## Printed and measured", "")
        yield from markdown.table(*printed.table(findings.beside))
        yield ""
        yield PRINTED_AND_MEASURED
    if findings.verdicts:
        yield from ("", "## Claims", "")
        for verdict in findings.verdicts:
            yield f"- {verdict.claim.says} **{verdict.sentence}**"
    if study.missing_data:
        yield from ("", "## Data to get", "")
        yield from (f"- {sentence}" for sentence in study.missing_data)


PRINTED_AND_MEASURED = (
    "Printed: the paper's numbers in its units. Measured: mean ± sample "
    "standard deviation over runs, and how many there are."
)
