"""What more texts, tasks and requests need, in tables.

    python benchmarks/scale.py            # prints the tables
    python benchmarks/scale.py --write    # writes them into docs/scale.md

`scale_formulas.py` counts what the library computes and stores. Rates come from
the points of one processor that `scale_points.py` measured.
"""

import argparse
from pathlib import Path
import re

import measurements
import scale_formulas as formulas

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "scale.jsonl"
PAGE = HERE.parent / "docs" / "scale.md"
MILLION, HOUR = 1_000_000, 3_600
# Of the machine on which the points were measured.
CORES = 2
# Headings of the sizes of points.
HEADS = {
    "stream": "texts, streamed",
    "run": "texts, all held",
    "adapters": "adapters",
    "members": "members",
}


def points_of(points, what):
    """Returns the points of one kind, by ascending size."""
    return sorted(
        (point for point in points if point["what"] == what),
        key=lambda point: point["size"],
    )


def value_of(point, name, best=min):
    """Returns a number of a point, the best if it has several turns.

    Other programs may have run meanwhile, which makes turns longer only.
    """
    value = point[name]
    return best(value) if isinstance(value, list) else value


def growth(points, what, columns):
    """Returns the table of one kind of points, with the exponents below.

    Args:
        points: List of points.
        what: Kind of points.
        columns: Dict from the heading of a column to a function from a point
            to a number.
    """
    chosen = points_of(points, what)
    lines = [f"| {HEADS[what]} | {' | '.join(columns)} |"]
    lines.append("|---" * (1 + len(columns)) + "|")
    for point in chosen:
        cells = [number(function(point)) for function in columns.values()]
        lines.append(f"| {point['size']:,} | {' | '.join(cells)} |")
    all_sizes, largest = [], []
    for function in columns.values():
        sizes = [point["size"] for point in chosen]
        values = [function(point) for point in chosen]
        slope, half = formulas.exponent(sizes, values)
        all_sizes.append(f"{slope:.2f} ± {half:.2f}")
        slope = formulas.exponent_between(sizes[-2:], values[-2:])
        largest.append(f"{slope:.2f}")
    lines.append(f"| exponent | {' | '.join(all_sizes)} |")
    lines.append(f"| of the largest two | {' | '.join(largest)} |")
    return "\n".join(lines)


def number(value):
    """Returns a number with three digits, or all digits before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def rates(points):
    """Returns the measured operations a second of a core, by what they do."""
    bare = points_of(points, "adapters")[0]
    text = formulas.read_once_operations(*formulas.SHAPES["MiniLM"], 32)
    seconds = CORES * value_of(bare, "bare_seconds")
    found = {"infer": 32 * text / seconds}
    for step, shape in zip(
        points_of(points, "step"), formulas.SHAPES, strict=True
    ):
        text = formulas.training_operations(*formulas.SHAPES[shape], 128)
        found[shape] = 32 * text / step["processor_seconds"]
    return found


def million_texts(points):
    """Returns the table of what a pass over a million texts takes."""
    rate = rates(points)
    lines = [
        "| encoder | tokens | operations, training | hours of a core "
        "| operations, inference | hours of a core | outputs of a block, "
        "float16 |\n" + "|---" * 7 + "|"
    ]
    for shape, (blocks, width) in formulas.SHAPES.items():
        for tokens in (32, 128):
            trains = MILLION * formulas.training_operations(
                blocks, width, tokens
            )
            infers = MILLION * formulas.read_once_operations(
                blocks, width, tokens
            )
            kept = MILLION * tokens * width * 2
            lines.append(
                f"| {shape} | {tokens} | {trains:.1e} | "
                f"{number(trains / rate[shape] / HOUR)} | {infers:.1e} | "
                f"{number(infers / rate['infer'] / HOUR)} | "
                f"{kept / 1e9:.0f} GB |"
            )
    return "\n".join(lines)


def thousand_tasks(points):
    """Returns the table of what a thousand tasks take."""
    rate = rates(points)
    lines = [
        "| encoder | adapters of 1,000 tasks | as whole models | hours of a "
        "core to train them, 3,000 texts of 32 tokens each |\n|---|---|---|---|"
    ]
    for shape, (blocks, width) in formulas.SHAPES.items():
        stored = 1_000 * formulas.adapter_bytes(blocks, width, width // 16)
        whole = 4_000 * formulas.encoder_weights(blocks, width)
        work = 3 * MILLION * formulas.training_operations(blocks, width, 32)
        lines.append(
            f"| {shape} | {stored / 1e9:.2f} GB | {whole / 1e9:.0f} GB | "
            f"{number(work / rate[shape] / HOUR)} |"
        )
    return "\n".join(lines)


def requests(points):
    """Returns the table of what a hundred million requests a day take."""
    lines = ["| engine | texts/s of one machine | machines |\n|---|---|---|"]
    for point in points_of(points, "engine"):
        speed = value_of(point, "texts_a_second", best=max)
        count = formulas.machines(100 * MILLION, speed)
        lines.append(f"| {point['name']} | {number(speed)} | {count:,} |")
    return "\n".join(lines)


def tables(points):
    """Returns a dict from the name of a table in the page to its text."""

    def value(name):
        return lambda point: value_of(point, name)

    reading = {
        "s of a core": value("processor_seconds"),
        "MB of the process, at most": value("megabytes"),
    }
    held = {**reading, "MB more at the end": value("megabytes_more")}
    members = {
        "training, s of a core": value("processor_seconds"),
        "inference, s of a core": value("infer_processor_seconds"),
        "MB": value("megabytes"),
    }
    adapters = {
        "MB of weights": value("megabytes"),
        "s to add them": value("adding_seconds"),
        "s for 32 texts": value("seconds"),
    }
    return {
        "stream": growth(points, "stream", reading),
        "run": growth(points, "run", held),
        "adapters": growth(points, "adapters", adapters),
        "members": growth(points, "members", members),
        "million": million_texts(points),
        "tasks": thousand_tasks(points),
        "requests": requests(points),
    }


def filled(page, points):
    """Returns the page with its tables written again.

    A table stands between `<!-- table: name -->` and `<!-- end -->`.
    """
    for name, table in tables(points).items():
        marks = rf"(<!-- table: {name} -->\n\n).*?(\n\n<!-- end -->)"
        page, found = re.subn(
            marks, lambda m, t=table: m[1] + t + m[2], page, flags=re.S
        )
        if found != 1:
            raise ValueError(f"{PAGE} has {found} places for table {name}.")
    return page


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    points = measurements.read(RESULTS)
    if arguments.write:
        PAGE.write_text(filled(PAGE.read_text("utf-8"), points), "utf-8")
    else:
        for name, table in tables(points).items():
            print(f"{name}\n{table}\n")


if __name__ == "__main__":
    main()
