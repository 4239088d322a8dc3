"""A study's tables in LaTeX, to be input; they need the package booktabs."""

import tabulate

from tf_adapters.papers.studies.claims import printed
from tf_adapters.papers.studies.report import markdown


def tables(study, cells, findings):
    """Returns the text of `table.tex`: one tabular, or two with `expected`.

    Args:
        study: `Study`.
        cells: List of dicts, `Tables.cells`.
        findings: `Findings`.
    """
    report = study.report
    parts = [_tabular(*markdown.pivot(cells, report.rows, report.columns))]
    if findings.beside:
        parts.append("% Printed and measured.")
        parts.append(_tabular(*printed.table(findings.beside)))
    return "\n".join(parts) + "\n"


def _tabular(header, body):
    # Texts all, so that numbers stay as they were rounded.
    return tabulate.tabulate(
        body, header, tablefmt="latex_booktabs", disable_numparse=True
    )
