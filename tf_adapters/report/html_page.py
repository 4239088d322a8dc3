"""Makes the content of `report.html`, a page in one file without scripts."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any
from xml.etree import ElementTree

from tf_adapters.report.content import ReportTable
from tf_adapters.report.content import cell_text
from tf_adapters.report.content import is_number

if TYPE_CHECKING:
    from pathlib import Path

    from tf_adapters.report.content import Picture


# CSS of this page, and of the pages that studies write.
STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; margin: 0 auto;
  max-width: 62rem; padding: 1rem; overflow-wrap: break-word; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: .5rem 0; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
.shows { font-size: 1.1rem; }
.note { color: #555; font-size: .875rem; }
.warning { border-left: 4px solid #d55e00; padding-left: .75rem; }
.table { overflow-x: auto; }
table { border-collapse: collapse; font-size: .875rem;
  font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem .3rem 0; text-align: left; vertical-align: top;
  white-space: nowrap; }
thead th { border-bottom: 2px solid #1a1a1a; vertical-align: bottom; }
tbody td { border-bottom: 1px solid #ddd; }
figure { margin: 1rem 0; overflow-x: auto; }
figcaption { color: #555; font-size: .875rem; }
img { max-width: 100%; height: auto; }
pre, code { font-size: .8rem; }
pre { background: #f4f4f4; padding: .6rem; white-space: pre-wrap;
  overflow-wrap: anywhere; }
summary { cursor: pointer; }
"""
_OWN = """
/* Pictures have 1.5 times the pixels that they are shown with. */
img { zoom: .67; }
.number { text-align: right; }
.text { white-space: pre-wrap; min-width: 9rem; overflow-wrap: anywhere; }
"""
# Texts of up to this length, such as class names, are not wrapped.
_SHORT = 24
# Texts of more characters are truncated. errors.csv has them in full.
_LONGEST = 600


def report_page(
    title: str,
    notes: Sequence[Any],
    tables: Sequence[ReportTable],
    pictures: Sequence[Any],
    last: ReportTable,
) -> str:
    """Returns the HTML of a report.

    Args:
        title: Title of the page.
        notes: List of sentences to show below the title.
        tables: List of `ReportTable`.
        pictures: List of pairs of a `Picture` and the path of its PNG file.
        last: `ReportTable` to show last.
    """
    root, main = start_page(title, _OWN)
    for note in notes:
        add(main, "p", note, {"class": "warning"})
    for table in tables:
        _add_table(main, table)
    if pictures:
        add(main, "h2", "Pictures")
    for picture, path in pictures:
        _add_picture(main, picture, path)
    _add_table(main, last)
    return as_html(root)


def start_page(title: str, style: str = "") -> tuple[Any, Any]:
    """Starts an HTML page with a title and the common style.

    Args:
        title: Title of the page, which is also its heading.
        style: CSS rules to add. Default: none.

    Returns:
        The ElementTree elements `html` and `main`. The page's content belongs
        into `main`.
    """
    root = ElementTree.Element("html", lang="en")
    head = add(root, "head")
    add(head, "meta", charset="utf-8")
    viewport = "width=device-width, initial-scale=1"
    add(head, "meta", name="viewport", content=viewport)
    add(head, "title", title)
    add(head, "style", STYLE + style)
    main = add(add(root, "body"), "main")
    add(main, "h1", title)
    return root, main


def as_html(root: Any) -> str:
    """Returns the text of a page from its element `html`."""
    # ElementTree escapes all texts.
    text = ElementTree.tostring(root, encoding="unicode", method="html")
    return f"<!DOCTYPE html>\n{text}\n"


def add(
    parent: Any,
    tag: Any,
    text: str | None = None,
    attributes: Any = None,
    **more: Any,
) -> Any:
    """Adds an element to an ElementTree element and returns it.

    Args:
        parent: The element to add to.
        tag: Name of the element, such as `"p"`.
        text: Its text, or `None` (default). Special characters are escaped.
        attributes: Dict of attributes. Default: none.
        **more: More attributes.
    """
    element = ElementTree.SubElement(parent, tag, attributes or {}, **more)
    element.text = text
    return element


def _add_table(main: Any, table: ReportTable) -> None:
    add(main, "h2", table.title)
    if table.rows:
        whole = add(add(main, "div", None, {"class": "table"}), "table")
        line = add(add(whole, "thead"), "tr")
        for name, value in zip(table.header, table.rows[0], strict=True):
            add(line, "th", name, _class_of(value))
        body = add(whole, "tbody")
        for row in table.rows:
            line = add(body, "tr")
            for value in row:
                add(line, "td", _cut(cell_text(value)), _class_of(value))
    if table.note:
        add(main, "p", table.note, {"class": "note"})


def _class_of(value: Any) -> dict[str, str]:
    if is_number(value):
        return {"class": "number"}
    return {"class": "text"} if len(value) > _SHORT else {}


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _add_picture(main: Any, picture: Picture, path: Path) -> None:
    figure = add(main, "figure")
    data = base64.b64encode(path.read_bytes()).decode()
    source = f"data:image/png;base64,{data}"
    add(figure, "img", alt=picture.caption, src=source)
    add(figure, "figcaption", f"{picture.caption} ({path.name})")
