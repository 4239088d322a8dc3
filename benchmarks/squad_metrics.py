"""Our exact match and F1 compared with a reference, on real questions of SQuAD.

    python benchmarks/squad_metrics.py --data_dir=<folder>

Reads `<folder>/squad/dev-v1.1.json`, makes predictions of every kind up for
each question and compares, question by question and over the whole set, with
`tests/references/squad_metrics.py`, which is written from the definitions. Ends
with status 1 if they differ by more than 1e-9.
"""

import argparse
from pathlib import Path
import sys

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

from tests import made_up_answers
from tests.references import squad_metrics as reference
from tf_adapters.data.rows import squad
from tf_adapters.heads import span_metrics

NAMES = ("exact_match", "answer_f1")


def read(path, most):
    """Returns gold answers and text of the first questions of a file."""
    questions = squad.parse_squad(path.read_text(encoding="utf-8"))[:most]
    return [
        (
            [answer["text"] for answer in question["answers"]],
            question["context"],
        )
        for _, question in questions
    ]


def difference(golds, answers):
    """Returns our metrics of a set and their largest difference."""
    ours = span_metrics.compute_span_metrics(NAMES, golds, answers)
    theirs = reference.means(golds, answers)
    pairs = zip(NAMES, theirs, strict=True)
    return ours, max(abs(ours[name] - float(value)) for name, value in pairs)


def compare(kind, questions):
    """Prints a line for one kind of predictions; returns the difference."""
    generator = np.random.default_rng(0)
    make = made_up_answers.KINDS[kind]
    golds = [gold for gold, _ in questions]
    answers = [make(*question, generator) for question in questions]
    each = [
        difference([gold], [answer])[1]
        for gold, answer in zip(golds, answers, strict=True)
    ]
    ours, whole = difference(golds, answers)
    print(
        f"{kind:<22} {len(answers):>7,} questions   exact match "
        f"{ours['exact_match']:.6f}   F1 {ours['answer_f1']:.6f}   "
        f"{sum(e > 1e-9 for e in each)} differ, largest {max(*each, whole):.1e}"
    )
    return max(*each, whole)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data_dir", required=True, type=Path)
    parser.add_argument("--questions", type=int, help="Default: all.")
    options = parser.parse_args()
    path = options.data_dir / "squad" / "dev-v1.1.json"
    questions = read(path, options.questions)
    largest = max(compare(kind, questions) for kind in made_up_answers.KINDS)
    count = len(questions) * len(made_up_answers.KINDS)
    print(f"{count:,} predictions, largest difference {largest:.1e}")
    return int(largest > 1e-9)


if __name__ == "__main__":
    sys.exit(main())
