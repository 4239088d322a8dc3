"""The report on a run that ranks texts for an anchor text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tf_adapters.report import mistakes
from tf_adapters.report import scores
from tf_adapters.report.content import ReportContent
from tf_adapters.report.content import ReportTable

if TYPE_CHECKING:
    from tf_adapters.report.run_files import RunFiles


def ranks_content(run: RunFiles) -> ReportContent:
    """Returns the `ReportContent` for a run that ranks texts.

    Args:
        run: `RunFiles` of a run that ranks texts. Each prediction is the rank
            of the right text for an anchor, from 1.
    """
    ranks = np.asarray(run.stored.compared["predicted"])
    table, _ = scores.table_of_scores(run, None, "", ("recall_at_5",))
    names = ("median rank", "largest rank")
    ends = ReportTable(
        "Ranks", names, [[float(np.median(ranks)), int(ranks.max())]]
    )
    order = np.argsort(-ranks, kind="stable")
    wrong = [[int(i), 1, int(ranks[i])] for i in order if ranks[i] > 1]
    columns = ("right", "predicted")
    errors = mistakes.table_of_mistakes(run, wrong, columns)
    return ReportContent([table, ends], errors=errors)
