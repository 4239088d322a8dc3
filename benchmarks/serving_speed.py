"""Many tasks in one SavedModel compared with one for each task.

    python benchmarks/serving_speed.py --tasks=4,16

Pfeiffer adapters of random weights on `minilm`, heads of two to four labels,
texts of the generated sentiment task. A request is a text and the name of its
task, drawn uniformly; requests come in groups, and a group is answered

- by one model: in one call;
- by a model for each task: in a call for each task that the group holds;
- as a bound that no mixed traffic reaches, by one of these models: in one call,
  as if the whole group were of its task.

The first two run in processes of their own, in turn; a ratio is a model for
each task over one model in seconds, its spread is over the turns. Memory is
what a process holds after serving; sizes are of the files.
"""

import argparse
import dataclasses
import os
from pathlib import Path
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # As train.py does.
sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]

import measurements  # noqa: E402
import numpy as np  # noqa: E402
from worker import Worker  # noqa: E402

WORKER = Path(__file__).parent / "serving_worker.py"


def export(num_tasks, folder):
    """Writes `<folder>/one/...` and `<folder>/each/<task>/...`.

    Returns:
        Path of the one model, and list of the paths of the others.
    """
    # Here, so that the process that measures imports no TensorFlow.
    import tf_adapters
    from tf_adapters.export import many_tasks
    from tf_adapters.export import saved_model

    encoder, tokenizer = tf_adapters.load_encoder("minilm")
    packer = tf_adapters.TextPacker(tokenizer, max_length=128)
    generator = np.random.default_rng(0)
    tasks, adapters, each = [], [], []
    for number in range(num_tasks):
        labels = tuple(f"label {n}" for n in range(2 + number % 3))
        model = tf_adapters.adapt(
            encoder,
            tf_adapters.methods.Pfeiffer(reduction_factor=16),
            tf_adapters.heads.Classification(labels),
        )
        for variable in model.trained_variables().values():
            variable.assign(0.05 * generator.normal(size=variable.shape))
        task = dataclasses.replace(
            tf_adapters.tasks.get("demo_sentiment"),
            name=f"task_{number}",
            labels=labels,
        )
        tasks.append(task)
        adapters.append(folder / "adapters" / task.name)
        tf_adapters.save_adapter(model, adapters[-1])
        path = folder / "each" / task.name
        each.append(
            saved_model.export_model(model, packer, path, task.text_fields)
        )
    bank = tf_adapters.load_bank(adapters, encoder)
    one = many_tasks.export_bank(bank, packer, tasks, folder / "one")
    return one, each


def megabytes(folders):
    """Returns the size of all files in folders."""
    files = [path for folder in folders for path in Path(folder).rglob("*")]
    return sum(path.stat().st_size for path in files if path.is_file()) / 1e6


def measure(num_tasks, arguments):
    """Measures one number of tasks; prints a line."""
    with tempfile.TemporaryDirectory() as folder:
        one, each = export(num_tasks, Path(folder))
        base = [sys.executable, WORKER, f"--group={arguments.group}"]
        base.append(f"--num_tasks={num_tasks}")
        workers = {
            "one": Worker([*base, one]),
            "each": Worker([*base, *each]),
        }
        answers = {}
        for turn in range(arguments.turns + 1):
            for name, what in (
                ("one", "mixed"),
                ("each", "mixed"),
                ("each", "alike"),
            ):
                answer = workers[name].do(what, arguments.steps)
                if turn:  # The first turn builds what a first call builds.
                    answers.setdefault((name, what), []).append(answer)
        sizes = megabytes([one]), megabytes(each)
        for worker in workers.values():
            worker.stop()
    report(num_tasks, arguments, answers, sizes)


def report(num_tasks, arguments, answers, sizes):
    """Prints a line of the table."""
    texts = arguments.steps * arguments.group
    seconds = {
        key: np.array([answer["seconds"] for answer in of_side])
        for key, of_side in answers.items()
    }
    ratios = seconds["each", "mixed"] / seconds["one", "mixed"]
    row = measurements.row(
        f"{num_tasks} tasks, mixed requests",
        "texts/s",
        texts / seconds["one", "mixed"],
        texts / seconds["each", "mixed"],
        "a SavedModel for each task",
        more_is_better=True,
    )
    measurements.write(arguments.output, [row])
    low, middle, high = np.quantile(ratios, [0.25, 0.5, 0.75])
    speeds = [
        f"{texts / np.median(seconds[key]):.0f}"
        for key in (("one", "mixed"), ("each", "mixed"), ("each", "alike"))
    ]
    memory = [
        f"{answers[name, 'mixed'][-1]['bytes'] / 1e9:.2f}"
        for name in ("one", "each")
    ]
    print(
        f"| {num_tasks} | {' | '.join(speeds)} | {middle:.2f} | "
        f"{low:.2f}-{high:.2f} | {sizes[0]:.0f} | {sizes[1]:.0f} | "
        f"{' | '.join(memory)} |",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--tasks", default="4,16")
    parser.add_argument("--group", type=int, default=32)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--steps", type=int, default=10)
    measurements.add_option(parser)
    arguments = parser.parse_args()
    print(
        "| tasks | one model, texts/s | one each | one each, groups of one "
        "task | ratio | middle half | one model, MB | one each, MB | one "
        "model, GB of memory | one each, GB |\n" + "|---" * 10 + "|"
    )
    for number in map(int, arguments.tasks.split(",")):
        measure(number, arguments)


if __name__ == "__main__":
    main()
