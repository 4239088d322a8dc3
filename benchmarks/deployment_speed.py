"""Exported files compared: size, time to load, latency, throughput, accuracy.

    python benchmarks/deployment_speed.py --peer_python=.venv-peer/bin/python
    python benchmarks/deployment_speed.py --run=runs/sst2 --data_dir=data

The first form exports Pfeiffer adapters with random weights on `minilm`. The
second one exports the adapter of a run, a classifier, and also compares
the files on the run's validation rows. "Accuracy lost" is the accuracy of the
first file minus the file's, with the standard error of the paired difference.

Each file runs in a process of its own, on all cores, in turn with the others;
a process that waits uses none. Numbers are medians over the turns, with half
the range of the middle half. `pytorch` is the encoder alone, without adapters
and head, with the encoder's weights (transformers, float32).
"""

import argparse
import itertools
from pathlib import Path
import sys
import tempfile

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))

import deployment_worker
import measurements
import numpy as np
from worker import Worker

import tf_adapters
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.data.batches import batch_plan
from tf_adapters.data.batches import pipeline
from tf_adapters.encoders.load import find_encoder
from tf_adapters.export import saved_model
from tf_adapters.export.check_texts import CheckTexts

_HERE = Path(__file__).parent


def write_saved_model(model, packer, folder, texts, lengths):
    return saved_model.export_model(model, packer, folder)


def onnx_writer(precision):
    """Returns a function that writes an ONNX file."""

    def write(model, packer, folder, texts, lengths):
        # Static ranges are measured on rows that are not evaluated.
        rows = texts.calibration[:200], texts.fields
        return tf_adapters.export_onnx(model, packer, folder, precision, *rows)

    return write


def openvino_writer(precision):
    """Returns a function that writes an OpenVINO model."""

    def write(model, packer, folder, texts, lengths):
        return tf_adapters.export_openvino(model, packer, folder, precision)

    return write


def litert_writer(precision):
    """Returns a function that writes a LiteRT file for the two lengths."""

    def write(model, packer, folder, texts, lengths):
        return tf_adapters.export_litert(
            model, packer, folder, precision, lengths=lengths
        )

    return write


# Row of the table: a key of `deployment_worker.LOADERS`, and the function that
# writes the file and returns its path.
WRITERS = {
    "saved_model": ("saved_model", write_saved_model),
    "onnx": ("onnx", onnx_writer("float32")),
    "onnx_int8": ("onnx", onnx_writer("int8")),
    "onnx_int8_static": ("onnx", onnx_writer("int8_static")),
    "openvino": ("openvino", openvino_writer("float32")),
    "openvino_int8": ("openvino", openvino_writer("int8")),
    "litert": ("litert", litert_writer("float32")),
    "litert_int8": ("litert", litert_writer("int8")),
}
# Steps of a turn, of half a second to a second each.
_STEPS = {"one": 40, "short": 6, "long": 2}


def make_model(encoder_name, max_length):
    """Returns a model with random adapters, its packer, and no texts."""
    encoder, tokenizer = tf_adapters.load_encoder(encoder_name)
    head = heads.Classification(("no", "yes"))
    model = tf_adapters.adapt(encoder, methods.Pfeiffer(), head)
    generator = np.random.default_rng(0)
    for variable in model.trained_variables().values():
        noise = 0.05 * generator.normal(size=variable.shape)
        variable.assign_add(noise.astype("float32"))
    packer = tf_adapters.TextPacker(
        tokenizer, max_length, encoder.takes_segments
    )
    return model, packer, CheckTexts()


def load_run(folder, data_dir):
    """Returns the model of a run, its packer, and its texts."""
    from tf_adapters.config import resolve
    from tf_adapters.export import check_texts
    from tf_adapters.runs import finished_run

    config = resolve.load_for_one_machine(Path(folder) / "config.yaml")
    config = resolve.resolve_config(
        config, {"data": {"data_dir": data_dir}} if data_dir else {}
    )
    run = finished_run.load_to_export(config, folder)
    return run.model, run.packer, check_texts.texts_of_run(config)


def right_rows(path, loader, model, batches, labels):
    """Returns whether a file's prediction is right, for each row."""
    run = deployment_worker.LOADERS[loader](path)
    names = list(model.feature_shapes())
    found = np.zeros(len(labels), int)
    for batch in batches:
        features = {name: batch[name].numpy() for name in names}
        found[batch["indices"].numpy()] = run(features).argmax(axis=-1)
    return found == labels


def accuracies(files, model, packer, texts):
    """Returns accuracy lost and its standard error in points, by name."""
    rows = list(texts.rows)
    examples = pipeline.to_tensors(
        model.head.encode(rows, texts.fields, packer, labeled=False)
    )
    plan = batch_plan.plan_evaluation(examples.lengths, 32)
    batches = list(pipeline.dataset(examples, plan))
    labels = np.array([row["label"] for row in rows])
    right = {
        name: right_rows(path, loader, model, batches, labels)
        for name, (loader, path) in files.items()
        if loader != "litert"  # It has signatures for two lengths only.
    }
    first = next(iter(right.values())).astype(float)
    print(f"Accuracy of {next(iter(right))}: {100 * first.mean():.2f}%.")
    lost = {}
    for name, values in right.items():
        difference = 100 * (first - values)
        error = difference.std(ddof=1) / len(rows) ** 0.5
        lost[name] = f"{difference.mean():.2f} ± {error:.2f}"
    return lost


def write_files(names, model, packer, texts, folder, lengths):
    """Writes the files; returns a dict from name to loader and path."""
    files = {}
    for name in names:
        loader, write = WRITERS[name]
        path = write(model, packer, folder / name, texts, lengths)
        files[name] = loader, path
    return files


def measure(workers, turns):
    """Returns a dict from name and shape to seconds for each step."""
    seconds = {}
    for turn in range(turns + 1):
        for (name, worker), what in itertools.product(workers.items(), _STEPS):
            steps = _STEPS[what] if turn else 2
            answer = worker.do(what, steps)
            if turn:  # The first turn only warms up.
                one = answer["seconds"] / steps
                seconds.setdefault((name, what), []).append(one)
    return seconds


def report(name, seconds, load, size, lost):
    """Prints a line of the table."""
    cells = []
    for what in _STEPS:
        times = np.array(seconds[name, what])
        rate = deployment_worker.ROWS / times
        values = 1000 * times if what == "one" else rate
        low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
        cells.append(f"{middle:.2f} ± {(high - low) / 2:.2f}")
    print(
        f"| {name} | {size:.1f} | {load:.2f} | {' | '.join(cells)} | {lost} |",
        flush=True,
    )


def rows_of(names, seconds, lengths):
    """Returns rows for each file, compared with PyTorch if it was measured.

    Args:
        names: Names of the files.
        seconds: What `measure` returned.
        lengths: Two integers, the tokens of short and of long texts.
    """
    cases = {"one": f"one text of {lengths[0]} tokens"}
    for what, tokens in zip(("short", "long"), lengths, strict=True):
        cases[what] = f"{deployment_worker.ROWS} texts of {tokens} tokens"
    return [
        measurements.row(
            f"{name}, {case}",
            "s",
            seconds[name, what],
            seconds.get(("pytorch", what)),
            "PyTorch, the encoder alone",
        )
        for name in names
        for what, case in cases.items()
    ]


def megabytes(path):
    """Returns the size of a file, or of all files in a folder."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(f.stat().st_size for f in files if f.is_file()) / 1e6


def make_workers(files, model, arguments):
    """Starts a process for each file, and one for PyTorch."""
    names = ",".join(model.feature_shapes())
    size = model.encoder_info.backbone.token_embedding.embeddings.shape[0]
    lengths = arguments.lengths
    options = [f"--names={names}", f"--vocabulary_size={size}"]
    options += ["--lengths", *lengths]
    worker = _HERE / "deployment_worker.py"
    workers = {
        name: Worker([sys.executable, worker, loader, path, *options])
        for name, (loader, path) in files.items()
    }
    if arguments.peer_python:
        encoder = find_encoder(model.encoder_info.name)
        script = _HERE / "peers" / "deployment_worker.py"
        workers["pytorch"] = Worker(
            [arguments.peer_python, script, encoder, *lengths]
        )
    return workers


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--run", help="Folder of a finished run.")
    parser.add_argument("--data_dir")
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--formats", default=",".join(WRITERS))
    parser.add_argument(
        "--peer_python", help="Python with torch, transformers."
    )
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--lengths", type=int, nargs=2, default=[32, 128])
    measurements.add_option(parser)
    arguments = parser.parse_args()
    short, long = arguments.lengths
    if arguments.run:
        model, packer, texts = load_run(arguments.run, arguments.data_dir)
    else:
        model, packer, texts = make_model(arguments.encoder, long)
    with tempfile.TemporaryDirectory() as folder:
        names = arguments.formats.split(",")
        files = write_files(
            *(names, model, packer, texts, Path(folder), arguments.lengths)
        )
        lost = accuracies(files, model, packer, texts) if texts.rows else {}
        workers = make_workers(files, model, arguments)
        seconds = measure(workers, arguments.turns)
        print(
            "| file | MB | seconds to load | ms of one text of "
            f"{short} tokens | texts/s at {short} tokens | at {long} | "
            "accuracy lost, points |\n" + "|---" * 7 + "|"
        )
        for name, worker in workers.items():
            worker.stop()
            size = megabytes(files[name][1]) if name in files else float("nan")
            load = worker.first["load"]
            report(name, seconds, load, size, lost.get(name, ""))
        rows = rows_of(files, seconds, arguments.lengths)
        measurements.write(arguments.output, rows)


if __name__ == "__main__":
    main()
