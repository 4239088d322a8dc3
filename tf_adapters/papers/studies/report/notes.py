"""Writes sentences for a study's report: units, and provenance of its runs."""

import collections
from typing import Any

import pandas as pd

from tf_adapters.launch.progress_lines import counted

PRINTED_AND_MEASURED = (
    "Printed: the paper's numbers in its units. Measured: as in the table of "
    "this study, and the number of runs."
)


_AGGREGATES = {
    "mean": "mean ± sample standard deviation over seeds",
    "standard_error": "mean ± its standard error over seeds",
    "best": "of the seed that is best on validation",
}


def units(report: Any) -> str:
    """Returns three sentences that explain the numbers in a study's table."""
    return (
        f"100 x the metric on {report.split}, "
        f"{_AGGREGATES[report.aggregate]}. Checkpoints and hyper-parameters "
        "are selected on validation. "
        "Trained: weights without the head's, as a share of the encoder's."
    )


def provenance_note(rows: list[dict[str, Any]]) -> list[str]:
    """Returns sentences on the provenance of the finished runs.

    Args:
        rows: List of dicts, from `run_rows.run_rows`.
    """
    rows = [row for row in rows if row["state"] == "finished"]
    sentences = [
        f"{counted(len(rows), 'run')}. Commits: {_counts(rows, 'commit')}.",
        f"Versions: {_counts(rows, 'versions')}.",
        f"Devices: {_counts(rows, 'device')}.",
    ]
    if any(row["changed"] for row in rows):
        sentences.append(
            "\\* From a source tree with changes, or from an unknown commit: "
            "do not report it."
        )
    by_data = pd.DataFrame(rows).groupby("data", sort=False)
    numbers = by_data.validation_fingerprint.nunique(dropna=False)
    return sentences + [
        f"**Not comparable: {data}: the runs saw {number} "
        "different sets of validation data.**"
        for data, number in numbers[numbers > 1].items()
    ]


def _counts(rows: Any, key: Any) -> Any:
    counts = collections.Counter(str(row[key] or "unknown") for row in rows)
    if len(counts) == 1:
        return next(iter(counts))
    return "; ".join(
        f"{value} ({count} runs)" for value, count in counts.items()
    )
