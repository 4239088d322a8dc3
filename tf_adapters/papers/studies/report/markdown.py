"""The Markdown of a study's report: pure functions of its cells and runs."""

import collections

from tf_adapters.launch.progress import counted

_HIDDEN = (
    "split",
    "encoder_weights",
    "head_weights",
    "from_changed_source",
    "runs_planned",
)


def markdown_report(name, command, declared, cells, rows):
    """Returns the text of a study's report.

    Args:
        name: Name of the study.
        command: Command line to show.
        declared: `Report`.
        cells: List of dicts, from `study_report.make_cells`.
        rows: List of dicts, from `study_report.run_rows`.
    """
    return "\n".join(
        [
            f"# Study {name}",
            "",
            *_head(command, declared.split, rows),
            "",
            *table(*pivot(cells, declared.rows, declared.columns)),
            "",
            *_provenance(rows),
            "",
            "## Statistics over seeds",
            "",
            *_details(cells),
        ]
    )


def units(split):
    """Returns what the numbers of a study's table are, three sentences."""
    return (
        f"100 x the metric on {split}, mean ± sample standard deviation over "
        "seeds. Checkpoints and hyper-parameters are selected on validation. "
        "Trained: weights beside the head, as a share of the encoder's."
    )


def _head(command, split, rows):
    finished = sum(row["state"] == "finished" for row in rows)
    failed = sum(row["state"] == "failed" for row in rows)
    yield f"`{command}`"
    yield ""
    yield units(split)
    if finished < len(rows):
        yield (
            f"**{len(rows) - finished} of {len(rows)} runs are missing, "
            f"{failed} of them failed.** Cells that lack runs say so."
        )


def _provenance(rows):
    rows = [row for row in rows if row["state"] == "finished"]
    yield f"{counted(len(rows), 'run')}. Commits: {_counts(rows, 'commit')}."
    yield f"Versions: {_counts(rows, 'versions')}."
    yield f"Devices: {_counts(rows, 'device')}."
    if any(row["changed"] for row in rows):
        yield (
            "\\* From a source tree with changes, or of unknown commit: not to "
            "be reported."
        )
    fingerprints = collections.defaultdict(set)
    for row in rows:
        fingerprints[row["data"]].add(row["validation_fingerprint"])
    for data, found in fingerprints.items():
        if len(found) > 1:
            yield (
                f"**Not comparable: {data}: the runs saw {len(found)} "
                "different sets of validation data.**"
            )


def _counts(rows, key):
    counts = collections.Counter(str(row[key] or "unknown") for row in rows)
    if len(counts) == 1:
        return next(iter(counts))
    return "; ".join(
        f"{value} ({count} runs)" for value, count in counts.items()
    )


def pivot(cells, row_keys, column_key):
    """Returns the table as in papers: rows, columns, and the rows' average.

    Args:
        cells: See `markdown_report`.
        row_keys: List of keys.
        column_key: Key.

    Returns:
        List of column names, and list of rows, lists of texts.
    """
    columns = list(dict.fromkeys(cell[column_key] for cell in cells))
    by_row = collections.defaultdict(dict)
    for cell in cells:
        by_row[tuple(str(cell[k]) for k in row_keys)][cell[column_key]] = cell
    body = []
    for label, found in by_row.items():
        means = [found[c]["mean"] if c in found else None for c in columns]
        shown = [_cell(found[c]) if c in found else "-" for c in columns]
        average = "-"
        if None not in means:
            average = f"{100 * sum(means) / len(means):.1f}"
        body.append([*label, _trained_share(found.values()), *shown, average])
    names = [_column_name(column, column_key, cells) for column in columns]
    return [*row_keys, "trained", *names, "average"], body


def _column_name(column, column_key, cells):
    cells = [cell for cell in cells if cell[column_key] == column]
    metrics = dict.fromkeys(cell["metric"] for cell in cells)
    return f"{column} ({', '.join(metrics)})"


def _cell(cell):
    if cell["mean"] is None:
        text = "-"
    else:
        text = f"{100 * cell['mean']:.1f}"
        if cell["standard_deviation"] is not None:
            text += f" ± {100 * cell['standard_deviation']:.1f}"
    if cell["from_changed_source"]:
        text += "*"
    if cell["runs_finished"] < cell["runs_planned"]:
        text += f" ({cell['runs_finished']} of {cell['runs_planned']} runs)"
    return text


def _trained_share(cells):
    """Returns the trained weights as a percentage of the encoder's.

    Without the head, as in AdapterBias, table 1.
    """
    shares = [
        (cell["trained_weights"] - (cell.get("head_weights") or 0))
        / cell["encoder_weights"]
        for cell in cells
        if cell["trained_weights"] and cell["encoder_weights"]
    ]
    if not shares:
        return "-"
    return f"{100 * sum(shares) / len(shares):.3g} %"


def _details(cells):
    names = dict.fromkeys(key for cell in cells for key in cell)
    names = [name for name in names if name not in _HIDDEN]
    body = [[_number(cell.get(name)) for name in names] for cell in cells]
    yield from table(names, body)


def _number(value):
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value)


def table(header, body):
    """Yields the lines of a table.

    Args:
        header: List of texts.
        body: List of lists of texts.
    """
    yield f"| {' | '.join(header)} |"
    yield f"|{'---|' * len(header)}"
    for row in body:
        yield f"| {' | '.join(row)} |".replace("*", "\\*")
