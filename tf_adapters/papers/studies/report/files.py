"""Writes a study's report: tables, verdicts on claims, and an HTML page.

`table.md.j2` and `report.html.j2` are the templates.
"""

from __future__ import annotations

import base64
import collections
from collections.abc import Sequence
import csv
import io
import itertools
from pathlib import Path
import struct
from typing import TYPE_CHECKING
from typing import Any

import jinja2

from tf_adapters.common.text_files import replace_text
from tf_adapters.papers.studies.claims import claims
from tf_adapters.papers.studies.claims import verdicts
from tf_adapters.papers.studies.grid import paper
from tf_adapters.papers.studies.report import cells as study_cells
from tf_adapters.papers.studies.report import frames
from tf_adapters.papers.studies.report import notes
from tf_adapters.papers.studies.report import printed_numbers
from tf_adapters.report.html_page import STYLE

if TYPE_CHECKING:
    from tf_adapters.launch.planned_run import Run
    from tf_adapters.papers.studies.grid.declaration import Study


def write_tables(tables: Any, folder: Path) -> None:
    """Writes the numbers of a study's report to `table.csv` and `runs.csv`.

    Args:
        tables: `Tables`.
        folder: The study's folder. It is created if needed.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_rows(folder / "table.csv", tables.cells)
    write_rows(folder / "runs.csv", tables.runs, _settings(tables.runs))


def _settings(rows: Any) -> list[Any]:
    """Returns the keys before `metric` in any row: run, state, settings."""
    return [
        key
        for row in rows
        for key in itertools.takewhile(lambda key: key != "metric", row)
    ]


def write_rows(path: Path, rows: list[dict[str, Any]], names: Any = ()) -> None:
    """Writes dicts as the rows of a CSV file.

    Args:
        path: Path of the file.
        rows: List of dicts. Some of the columns can be missing.
        names: Columns that come first, and that are written even if no row has
            them.
    """
    keys = (key for row in rows for key in row)
    names = list(dict.fromkeys((*names, *keys)))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    replace_text(path, text.getvalue())


def write_study_report(
    name: str,
    command: Any,
    study: Study,
    runs: Sequence[Run],
    tables: Any,
    folder: Path,
    pictures: Sequence[Any] = (),
) -> str:
    """Writes `claims.csv`, `table.md`, `table.tex` and `report.html`.

    Args:
        name: Name of the study.
        command: Command line to show.
        study: `Study`.
        runs: List of `Run`.
        tables: `Tables`.
        folder: The study's folder, which exists.
        pictures: List of `figures.Made`. Defaults to none.

    Returns:
        Text of `table.md`.
    """
    folder = Path(folder)
    found = _find(study, runs, tables, folder, pictures)
    rows = claims.claim_rows(found["verdicts"])
    write_rows(folder / "claims.csv", rows, claims.COLUMNS)
    replace_text(folder / "table.tex", _latex(found))
    texts = {
        file: _TEMPLATES.get_template(f"{file}.j2").render(
            found, name=name, title=_title(name, study), command=command
        )
        for file in ("table.md", "report.html")
    }
    for file, text in texts.items():
        replace_text(folder / file, text)
    return texts["table.md"]


def _find(
    study: Study, runs: Any, tables: Any, folder: Path, pictures: Any
) -> dict[str, Any]:
    """Returns a dict of the values that the report's templates show."""
    report = study.report
    chosen, of_all_cells = (
        study_cells.chosen_rows(tables.runs, report, study.select_over, further)
        for further in (False, True)
    )
    paths = collections.defaultdict(list)
    for picture in pictures:
        paths[picture.figure].append(picture.csv)
    printed = printed_numbers.find_printed_numbers(study, runs, of_all_cells)
    states = collections.Counter(row["state"] for row in tables.runs)
    return {
        "study": study,
        "runs": tables.runs,
        "finished": states["finished"],
        "failed": states["failed"],
        "changed": any(row.get("changed") for row in tables.runs),
        "measured": frames.measured(
            tables.cells, report.rows, report.columns, report.aggregate
        ),
        "statistics": frames.statistics(tables.cells),
        "states": frames.states(tables.runs),
        "printed": printed_numbers.as_frame(printed) if printed else None,
        "verdicts": claims.judge(study, runs, chosen, folder, paths),
        "pictures": pictures,
        "provenance": notes.provenance_note(tables.runs),
        "units": notes.units(study, runs),
        "printed_note": notes.PRINTED_AND_MEASURED,
        "verdicts_note": verdicts.HOW,
        "style": STYLE,
    }


def _title(name: str, study: Study) -> str:
    if study.paper is None:
        return f"Study {name}"
    items = f": {', '.join(study.covers)}" if study.covers else ""
    return f"{paper.PAPERS[study.paper]}{items}"


def _latex(found: Any) -> str:
    """Returns the study's table in LaTeX, for the package booktabs.

    If the paper's numbers are known, a table that compares them follows.
    """
    parts = [found["measured"].to_latex(index=False, escape=True)]
    if found["printed"] is not None:
        parts.append("% Printed and measured.\n")
        parts.append(found["printed"].to_latex(index=False, escape=True))
    return "".join(parts)


def _markdown(frame: Any) -> Any:
    frame = frame.map(lambda text: text.replace("*", "\\*"))
    # All values are strings, so that rounded numbers stay as they are.
    return frame.to_markdown(
        index=False, tablefmt="github", disable_numparse=True
    )


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def _rems(path: Path) -> int:
    """Returns the least width of a readable picture, in the CSS unit rem."""
    width, height = struct.unpack(">II", path.read_bytes()[16:24])
    return round(14 * width / height)


_TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent),
    autoescape=lambda name: bool(name) and name.endswith(".html.j2"),
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    keep_trailing_newline=True,
)
_TEMPLATES.filters |= {"markdown": _markdown, "base64": _base64, "rems": _rems}
