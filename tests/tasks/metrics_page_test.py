"""Tests that the page of metrics matches the declared kinds of output."""

from pathlib import Path

from tf_adapters.tasks import metrics_page
from tf_adapters.tasks.output_kinds import KINDS

PAGE = Path(__file__).parents[2] / "docs/metrics.md"


def test_the_page_is_as_it_would_be_made():
    made = metrics_page.page()
    assert PAGE.read_text(encoding="utf-8").strip() == made.strip(), (
        "python -m tf_adapters.tasks.metrics_page > docs/metrics.md"
    )


def test_each_metric_has_a_meaning_and_each_meaning_a_metric():
    declared = {name for kind in KINDS.values() for name in kind.metrics}
    assert set(metrics_page.MEANINGS) == declared
