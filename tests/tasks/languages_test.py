"""Tests that the tables of He et al. 2021 give its printed averages."""

import pytest

from tf_adapters.tasks import get
from tf_adapters.tasks.languages import averages
from tf_adapters.tasks.languages import in_language

# Table 14, and the averages of table 3.
XNLI = {
    "ft": (
        "88.28 78.34 82.73 82.07 81.34 83.63 81.93 75.33 79.04 71.59 76.67 "
        "78.36 71.86 79.32 78.80",
        (79.28, 78.64, 77.03),
    ),
    "adapter_256": (
        "89.22 78.62 83.59 83.47 82.39 84.69 83.27 76.42 79.74 72.21 77.84 "
        "78.80 72.27 79.32 79.34",
        (80.08, 79.43, 77.60),
    ),
}


@pytest.mark.parametrize("row", XNLI)
def test_averages_of_table_3(row):
    text, expected = XNLI[row]
    languages = get("xnli").languages
    values = dict(zip(languages.names, map(float, text.split()), strict=True))
    received = averages(values, languages)
    for group, value in zip(
        ("all", "target", "distant"), expected, strict=True
    ):
        assert received[group] == pytest.approx(value, abs=0.011)


def test_groups_have_the_tables_sizes():
    sizes = {
        name: (len(get(name).languages.names), len(get(name).languages.distant))
        for name in ("ud_pos", "wikiann", "xnli", "pawsx")
    }
    papers = {"ud_pos": (33, 18), "wikiann": (40, 24), "xnli": (15, 8)}
    assert sizes == {**papers, "pawsx": (7, 3)}
    for name in sizes:
        languages = get(name).languages
        assert set(languages.distant) < set(languages.names)
        assert len(set(languages.names)) == len(languages.names)


def test_treebanks_belong_to_their_language():
    values = {"en_ewt": 0.9, "ja_gsd": 0.3, "de": 0.5}
    received = averages(values, get("ud_pos").languages)
    assert received["target"] == pytest.approx(0.4)
    assert received["distant"] == 0.3
    assert "distant" not in averages({"en": 1.0}, get("ud_pos").languages)


def test_a_task_in_another_language():
    task = in_language(get("ud_pos"), "de")
    assert (task.source, task.folder) == ("xtreme_pos/xtreme_pos_de", "ud/de")
    # TensorFlow Datasets has the two under each other's code.
    assert in_language(get("ud_pos"), "ta").source.endswith("_tl")
    assert in_language(get("xnli"), "de").train_task is None
    with pytest.raises(ValueError, match="`sst2` has one language"):
        in_language(get("sst2"), "de")
