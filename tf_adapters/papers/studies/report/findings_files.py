"""Writes what a study finds: `claims.csv`, `table.tex` and `report.html`.

What is also found in words follows the table in `table.md`.
"""

import dataclasses
from pathlib import Path

from tf_adapters.common.errors import ConfigError
from tf_adapters.common.extras import needs_extra
from tf_adapters.common.text_files import replace_text
from tf_adapters.papers.studies.claims import claims
from tf_adapters.papers.studies.report import findings as findings_lib
from tf_adapters.papers.studies.report import report as study_report


def write(name, command, study, runs, tables, folder, pictures):
    """Writes the files, and returns the `Tables` with what was found.

    Without the extra `studies` only `claims.csv` is written.

    Args:
        name: Name of the study.
        command: Command line to show.
        study: `Study`.
        runs: List of `Run`.
        tables: `Tables`.
        folder: The study's folder.
        pictures: List of `figures.Made`.
    """
    folder = Path(folder)
    findings = findings_lib.find(study, runs, tables.runs, folder, pictures)
    rows = claims.claim_rows(findings.verdicts)
    study_report.write_csv(folder / "claims.csv", rows, claims.COLUMNS)
    try:
        with needs_extra("studies", "report.html"):
            from tf_adapters.papers.studies.report import latex
            from tf_adapters.papers.studies.report import page
    except ConfigError as error:
        print(error, flush=True)
    else:
        text = latex.tables(study, tables.cells, findings)
        replace_text(folder / "table.tex", text)
        text = page.page(name, command, study, tables, findings)
        replace_text(folder / "report.html", text)
    sections = findings_lib.in_markdown(study, findings)
    if sections:
        text = f"{tables.markdown}\n{sections}"
        tables = dataclasses.replace(tables, markdown=text)
        study_report.write_markdown(tables, folder)
    return tables
