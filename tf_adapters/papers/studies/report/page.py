"""`report.html`: all that a study found, on one page in one file."""

import base64
import html
import struct

import tabulate

from tf_adapters.papers.studies.claims import claims
from tf_adapters.papers.studies.claims import printed
from tf_adapters.papers.studies.grid import paper
from tf_adapters.papers.studies.report import findings as findings_lib
from tf_adapters.papers.studies.report import markdown
from tf_adapters.report.html_page import STYLE

_STYLE = (
    STYLE
    + """
.claims { list-style: none; padding: 0; }
.claims li { border-left: 4px solid #888; margin: 0 0 1rem;
  padding: .1rem 0 .1rem .75rem; }
.claims p { margin: .2rem 0; }
.verdict { color: #fff; background: #666; border-radius: 3px;
  font-size: .8rem; padding: .1rem .45rem; white-space: nowrap; }
.shown { border-color: #00785a !important; }
.shown .verdict { background: #00785a; }
.not-shown { border-color: #b34700 !important; }
.not-shown .verdict { background: #b34700; }
td:first-child { white-space: normal; min-width: 6rem; }
details td:first-child { white-space: nowrap; }
details td:nth-child(2) { white-space: normal; min-width: 8rem; }
"""
)


def page(name, command, study, tables, findings):
    """Returns the HTML of a study's report.

    Args:
        name: Name of the study.
        command: Command line that makes it.
        study: `Study`.
        tables: `Tables`.
        findings: `Findings`.
    """
    title = _title(name, study)
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head>",
        f"<body><main><h1>{html.escape(title)}</h1>",
        *_introduction(study, tables),
        *_claims(findings.verdicts),
        *_beside(findings.beside),
        *_measured(study, tables),
        *_pictures(study, findings.pictures),
        *_missing(study),
        *_runs(tables.runs),
        f"<h2>Command</h2><pre>{html.escape(command)}</pre>",
        "</main></body></html>",
    ]
    return "\n".join(parts) + "\n"


def _title(name, study):
    if study.paper is None:
        return f"Study {name}"
    items = f": {', '.join(study.covers)}" if study.covers else ""
    return f"{paper.PAPERS[study.paper]}{items}"


def _introduction(study, tables):
    if study.shows:
        yield f'<p class="shows">{html.escape(study.shows)}</p>'
    lacking = sum(row["state"] != "finished" for row in tables.runs)
    if lacking:
        yield (
            f'<p class="warning">{lacking} of {len(tables.runs)} runs have not '
            "finished. Cells that lack runs say so.</p>"
        )
    if any(row.get("changed") for row in tables.runs):
        yield (
            '<p class="warning">Cells with * have runs from a source tree with '
            "changes, or of unknown commit: not to be reported.</p>"
        )


def _claims(verdicts):
    if not verdicts:
        return
    yield '<h2>What the paper says of it</h2><ul class="claims">'
    for verdict in verdicts:
        kind = verdict.verdict.replace(" ", "-")
        says, sentence = map(
            html.escape, (verdict.claim.says, verdict.sentence)
        )
        yield (
            f'<li class="{kind}"><p>{says} <span class="verdict">'
            f'{verdict.verdict}</span></p><p class="note">{sentence}</p></li>'
        )
    yield f'</ul><p class="note">{html.escape(claims.HOW)}</p>'


def _beside(beside):
    if beside:
        yield "<h2>Printed and measured</h2>"
        yield _table(*printed.table(beside))
        yield f'<p class="note">{findings_lib.PRINTED_AND_MEASURED}</p>'


def _measured(study, tables):
    report = study.report
    yield "<h2>Measured</h2>"
    yield _table(*markdown.pivot(tables.cells, report.rows, report.columns))
    yield f'<p class="note">{markdown.units(report.split)}</p>'


def _pictures(study, pictures):
    if not study.figures:
        return
    yield "<h2>Pictures</h2>"
    for picture in pictures:
        data = base64.b64encode(picture.png.read_bytes()).decode()
        caption = html.escape(picture.caption)
        numbers = html.escape(f"figures/{picture.csv.name}")
        yield (
            f'<figure><img alt="{caption}" style="min-width: {_rems(picture)}'
            f'rem" src="data:image/png;base64,{data}">'
            f"<figcaption>{caption}<br>Numbers: {numbers}</figcaption></figure>"
        )
    made = {picture.figure for picture in pictures}
    for figure in study.figures:
        if figure.name not in made:
            name = html.escape(figure.name)
            yield f'<p class="warning">{name} was not made.</p>'


def _rems(picture):
    """Returns how wide a picture is at least, so that its text is readable."""
    header = picture.png.read_bytes()[16:24]
    width, height = struct.unpack(">II", header)
    return round(14 * width / height)


def _missing(study):
    if study.missing_data:
        yield "<h2>Data to get</h2><ul>"
        yield from (f"<li>{html.escape(s)}</li>" for s in study.missing_data)
        yield "</ul>"


_PROVENANCE = ("state", "validation", "test", "seconds", "commit", "device")
_PROVENANCE += ("versions", "folder")


def _runs(rows):
    header = ["run", *_PROVENANCE]
    body = [[_text(row, key) for key in header] for row in rows]
    finished = sum(row["state"] == "finished" for row in rows)
    yield f"<h2>Runs</h2><details><summary>{finished} finished of {len(rows)}"
    yield f"</summary>{_table(header, body)}</details>"


def _text(row, key):
    value = row.get(key)
    if key == "folder":
        value = value or row["run"]
    if key == "state" and row.get("error"):
        value = f"{value}: {row['error']}"
    if value is None or value == "":
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _table(header, body):
    text = tabulate.tabulate(
        body, header, tablefmt="html", disable_numparse=True
    )
    return f'<div class="table">{text}</div>'
