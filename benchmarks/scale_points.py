"""Measures how time, memory and operations grow, for docs/scale.md.

    python benchmarks/scale_points.py
    python benchmarks/scale_points.py --only=stream,members

- stream, run: texts read from a file (`scale_worker.py`);
- adapters: a bank of Pfeiffer adapters on `minilm` (`bank_speed.py`);
- members: a fusion with the shape of MiniLM (`fusion_worker.py`);
- steps: training steps of Houlsby's adapters (`memory_worker.py`);
- engines: texts a second of exported files and of the live server, from what
  `bench.py` measured on this processor;
- operations: multiplications and additions of matrix products, counted in
  TensorFlow's graph. They need no quiet machine.

Points go to benchmarks/results/scale.jsonl, a line for each, and replace those
of the same kind, size and processor.
"""

import argparse
import datetime
import json
import math
from pathlib import Path
import subprocess
import sys
import tempfile

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import machine  # noqa: E402
import measurements  # noqa: E402
from scale_formulas import SHAPES  # noqa: E402
from scale_formulas import encoder_weights  # noqa: E402

ROOT = HERE.parent
RESULTS = HERE / "results" / "scale.jsonl"
ROWS = (1_000, 10_000, 100_000, 1_000_000)
ADAPTERS = (1, 10, 100, 1_000)
MEMBERS = (1, 2, 4, 8, 16)
TOKENS = (16, 32, 64, 128)
UNITS = 64
_BATCH = "32 texts of 32 tokens"
# Heading in the page, and benchmark and case of `bench.py`.
ENGINES = (
    ("live server, 8 adapters", "server", "8 adapters, zipf"),
    ("live server, 1,000 adapters", "server", "1000 adapters, zipf"),
    ("SavedModel in a process", "deployment", f"saved_model, {_BATCH}"),
    ("ONNX Runtime, float32", "deployment", f"onnx, {_BATCH}"),
    ("ONNX Runtime, int8", "deployment", f"onnx_int8, {_BATCH}"),
)


def worker_answer(script, *options):
    """Runs a script; returns the JSON of its last line."""
    command = [sys.executable, HERE / script, *options]
    done = subprocess.run(
        list(map(str, command)), check=True, stdout=subprocess.PIPE, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def reading(source, sizes):
    """Yields the points of one source of texts."""
    for size in sizes:
        options = f"--source={source}", f"--rows={size}"
        answer = worker_answer("scale_worker.py", *options)
        yield {"what": source, "size": size, **answer}


def adapters():
    """Yields a point for each number of adapters in a bank."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "rows.jsonl"
        counts = ",".join(map(str, ADAPTERS))
        command = [sys.executable, HERE / "bank_speed.py", "--kinds=pfeiffer"]
        command += ["--tokens=32", "--turns=3", f"--adapters={counts}"]
        subprocess.run([*command, f"--output={output}"], check=True)
        rows = {row["case"]: row for row in measurements.read(output)}
    for size in ADAPTERS:
        speeds = rows[f"{size} adapters, 32 tokens, uniform"]
        yield {
            "what": "adapters",
            "size": size,
            "megabytes": rows[f"{size} adapters, weights"]["ours"][0],
            "adding_seconds": rows[f"{size} adapters, adding"]["ours"][0],
            "seconds": [32 / one for one in speeds["ours"]],
            "bare_seconds": [32 / one for one in speeds["theirs"]],
        }


def members():
    """Yields a point for each number of members of a fusion."""
    import fusion_speed

    for size in MEMBERS:
        options = ["--shape=minilm", f"--adapters={size}"]
        sides = fusion_speed.start_sides(options)
        found = fusion_speed.measure(sides, turns=3, steps=1)
        name = "processor_seconds"
        yield {
            "what": "members",
            "size": size,
            name: fusion_speed.values(found, "ours", "train", name),
            f"infer_{name}": fusion_speed.values(found, "ours", "infer", name),
            "megabytes": 1e3 * fusion_speed.gigabytes(found, "ours"),
        }


def steps():
    """Yields the step of each encoder; the size is its number of weights."""
    shapes = zip(("minilm", "bert_base"), SHAPES.values(), strict=True)
    for shape, sizes in shapes:
        options = f"--shape={shape}", "--method=houlsby"
        answer = worker_answer("memory_worker.py", *options)
        yield {
            "what": "step",
            "shape": shape,
            "size": encoder_weights(*sizes),
            **answer,
        }


def engines():
    """Yields the texts a second of ways to serve; the size is a rank."""
    lines = measurements.read(HERE / "results" / "bench.jsonl")
    rows = {
        (line["benchmark"], row["case"]): row
        for line in lines
        if line["processor"] == machine.processor()
        for row in line["rows"]
    }
    for size, (name, benchmark, case) in enumerate(ENGINES):
        row = rows[benchmark, case]
        speeds = row["ours"]
        if row["unit"] == "s":
            speeds = [32 / seconds for seconds in speeds]
        found = {"what": "engine", "name": name, "size": size}
        yield {**found, "texts_a_second": speeds}


def operations():
    """Yields the counted operations of an encoder, a bottleneck, a fusion."""
    from tf_adapters import methods

    for tokens in TOKENS:
        counted = count(methods.HeadOnly(), tokens)
        yield {"what": "operations", "size": tokens, "operations": counted}
        counted = count(methods.Pfeiffer(units=UNITS), tokens)
        yield {
            "what": "operations with adapters",
            "size": tokens,
            "operations": counted,
        }
    for size in MEMBERS:
        names = tuple(f"member{n}" for n in range(size))
        method = methods.Fusion(adapters=names, units=384 // 16)
        yield {
            "what": "operations with members",
            "size": size,
            "operations": count(method, 128),
        }


def count(method, tokens, texts=32):
    """Returns the operations of matrix products for texts on MiniLM's shape."""
    import fusion_worker
    import tensorflow as tf

    model = fusion_worker.make_trainer("minilm", method, "float32").model
    specs = {
        name: tf.TensorSpec((texts, tokens), tf.int32, name)
        for name in model.feature_shapes()
    }
    call = tf.function(lambda inputs: model(inputs, training=False))
    graph = call.get_concrete_function(specs).graph
    return sum(map(products_of, graph.get_operations()))


def products_of(operation):
    """Returns the operations of a node of a graph; 0 if it is no product."""
    if operation.type not in ("MatMul", "BatchMatMulV2"):
        return 0
    left = operation.inputs[0].shape.as_list()
    name = "transpose_a" if operation.type == "MatMul" else "adj_x"
    summed = left[-2] if operation.get_attr(name) else left[-1]
    return 2 * summed * math.prod(operation.outputs[0].shape.as_list())


PARTS = {
    "stream": lambda: reading("stream", ROWS),
    "run": lambda: reading("run", ROWS),
    "adapters": adapters,
    "members": members,
    "steps": steps,
    "engines": engines,
    "operations": operations,
}


def key(point):
    """Returns what identifies a point."""
    return point["what"], point["size"], point["processor"]


def save(point):
    """Writes a point in place of an earlier one."""
    points = [p for p in measurements.read(RESULTS) if key(p) != key(point)]
    RESULTS.unlink(missing_ok=True)
    measurements.write(RESULTS, sorted([*points, point], key=key))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default=",".join(PARTS))
    arguments = parser.parse_args()
    parts = arguments.only.split(",")
    unknown = [name for name in parts if name not in PARTS]
    if unknown:
        parser.error(
            f"--only names parts. Expected: {', '.join(PARTS)}. Received: "
            f"{', '.join(unknown)}."
        )
    facts = {
        "processor": machine.processor(),
        "commit": machine.commit(ROOT),
        "date": datetime.date.today().isoformat(),
    }
    for name in parts:
        for point in PARTS[name]():
            save({**point, **facts})
            print(json.dumps(point), flush=True)


if __name__ == "__main__":
    main()
