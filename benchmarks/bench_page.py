"""Writes what `bench.py` measured as a page of the documentation."""

import statistics

import measurements
from suite import BENCHMARKS

_START = """\
# Benchmarks

`make bench` writes this page from `benchmarks/results/bench.jsonl`. Each number
is the median over the turns of a run, with the smallest and the largest turn in
parentheses. A ratio says how many times as good ours is as theirs, measured in
turn: 2 is twice as fast, or half the memory. A goal is the smallest ratio that
the project wants.

```sh
make bench DATA_DIR=<folder> PEER=.venv-peer/bin/python
make bench DATA_DIR=<folder> PEER=.venv-peer/bin/python ONLY=training,memory
```

A run is compared with the last committed one of the same processor. A number is
worse if none of its turns is as good as any turn was before, and its median is
at least 2% worse. `.venv-peer` is the Python of PyTorch, `adapters` and PEFT
(`benchmarks/peers`); what compares with them is left out without `PEER`, and
rows that were measured with it stay. [Measured results](results.md) has
accuracies, and speeds on other processors; [scale](scale.md) says what larger
numbers of texts, tasks and requests need.
"""
_NOTHING = """\
Nothing has been measured for this page yet: the first `make bench` on a quiet
machine fills it.
"""
# Share of the cores that other programs may use.
_QUIET = 0.05
_HEAD = """\
| | | ours | compared with | theirs | ratio | goal |
|---|---|---|---|---|---|---|"""


def median(values):
    """Returns the median of a list of numbers."""
    return statistics.median(values)


def page(lines):
    """Returns the text of the page.

    Args:
        lines: Lines of the results, sorted by processor.
    """
    parts = [_START] if lines else [_START, _NOTHING]
    processor = None
    for line in lines:
        if line["processor"] != processor:
            processor = line["processor"]
            parts.append(f"## {processor}\n")
        parts.append(_section(line))
    return "\n".join(parts)


def _section(line):
    """Returns the section of a benchmark."""
    benchmark = BENCHMARKS[line["benchmark"]]
    versions = ", ".join(f"{k} {v}" for k, v in line["versions"].items())
    options = " ".join(
        option.format(data_dir="<folder>", peer_python=".venv-peer/bin/python")
        for option in benchmark.options
    )
    command = f"python benchmarks/{benchmark.script} {options}".rstrip()
    rows = "\n".join(_row(row, benchmark) for row in line["rows"])
    return f"""\
### {benchmark.title}

`{command}`

{_HEAD}
{rows}

Commit {line["commit"]}, {line["date"]}, {line["minutes"]} minutes; {versions}.
{circumstances(line)}

{comparison(line)}
"""


def circumstances(line):
    """Returns a sentence about what else the machine did."""
    share = f"{100 * line['busy_before']:.0f}%"
    found = f"Other programs used {share} of the cores before the start."
    if line["busy_before"] > _QUIET:
        found += " **So seconds say little here.**"
    return found


def comparison(line):
    """Returns a sentence about what is worse than in the run before."""
    if "before" not in line:
        return "There is no earlier run to compare with."
    before, others = line["before"], line.get("not_compared", [])
    nothing = "Nothing that can be compared" if others else "Nothing"
    found = f"{nothing} is worse than at {before}."
    if line["worse"]:
        found = f"Worse than at {before}: {'; '.join(line['worse'])}."
    if others:
        found += f" Cannot be compared: {'; '.join(others)}."
    return found


def _row(row, benchmark):
    """Returns a line of the table."""
    cells = [row["case"], row["unit"], _spread(row["ours"])]
    if "theirs" not in row:
        return f"| {' | '.join([*cells, '', '', '', ''])} |"
    ratios = measurements.ratios(row)
    cells += [row["compared_with"], _spread(row["theirs"])]
    cells.append(_spread(ratios, digits=2))
    goal = benchmark.goal_of(row["case"])
    cells.append(_verdict(goal, median(ratios)) if goal else "")
    return f"| {' | '.join(cells)} |"


def _verdict(goal, ratio):
    return f"{goal:.2f}: {'reached' if ratio >= goal else 'missed'}"


def _spread(values, digits=None):
    """Returns the median of values, and their range if there are several."""
    middle, low, high = (
        f"{value:.{digits}f}" if digits else _number(value)
        for value in (median(values), min(values), max(values))
    )
    return middle if len(values) == 1 else f"{middle} ({low}-{high})"


def _number(value):
    """Returns a number with three digits, or all of them before the point."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
