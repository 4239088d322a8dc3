"""Tests that studies cover all tables and figures with results in the papers.

Left out are drawings of an architecture (Houlsby et al., figure 2; Pfeiffer et
al., figures 1 and 2; AdapterBias, figures 1 to 3; He et al., figure 1) and
tables of settings or of data (AdapterBias, table 5; He et al., tables 8 to 11;
Han et al., tables 2 and 3), which presets and tasks have.
"""

import pytest

from tf_adapters.papers.studies.grid import declaration
from tf_adapters.papers.studies.grid import paper


def _numbered(kind, *numbers):
    return [f"{kind} {number}" for number in numbers]


ITEMS = {
    "houlsby2019": [
        *_numbered("table", 1, 2),
        *_numbered("figure", 1, 3, 4, 5),
        *_numbered("figure", "6 left", "6 middle", "6 right"),
        "section 3.6 extensions",
    ],
    "pfeiffer2021": [
        *_numbered("table", 1, 2, 3, 4),
        *_numbered("figure", 3, 4, 5, 6, 7, 8, 9),
    ],
    "adapterbias": [
        *_numbered("table", 1, 2, 3, 4, 6, 7),
        *_numbered("figure", 4, 5, 6),
        "word cloud",
    ],
    "he2021": [
        *_numbered("table", 1, 2, 3, 4, 5, 6, 7, 12, 13, 14, 15),
        *_numbered("figure", 2, 3, 4, 5, 6, 7, 8, 9, 10),
    ],
    "han2021": [
        "table 1",
        *_numbered("figure", 1, 2, 3, 4, 5, 9, 10, 13),
        "appendix C",
    ],
}


@pytest.mark.parametrize("name", paper.PAPERS)
def test_every_item_is_covered(name):
    covered = {
        item
        for path in declaration.STUDIES.glob("*.yaml")
        for study in [declaration.read_study(path)[0]]
        if study.paper == name
        for item in study.covers
    }
    assert sorted(set(ITEMS[name]) - covered) == []
