"""Training and inference on a GPU, by our models on JAX and by PyTorch.

    python benchmarks/gpu.py --peer_python=.venv-peer/bin/python
    python benchmarks/gpu.py --device=cpu --small    # Does it run?

The first needs jax[cuda12], keras, keras-hub and this library for its own
Python, without TensorFlow; and `peers/requirements.txt`, with a CUDA build of
PyTorch, for `--peer_python`. Each case runs on an encoder of random weights, in
a process of its own, one after the other, and PyTorch's also compiled. Cases
come in order of importance: with `--minutes` over, the others are left out.
Both sides train the same batches with AdamW and clipped gradients.

The share of the peak is the model's operations a second (`operations` in
`gpu_cases.py`) over those of a product of two large matrices, of the same
precision, measured by the peer's Python on the same device.
"""

import argparse
import dataclasses
import json
from pathlib import Path
import statistics
import subprocess
import sys
import time

import gpu_cases

HERE = Path(__file__).parent
SIDES = ("ours, JAX", "PyTorch", "PyTorch, compiled")
_PEAK = """
import sys, time, torch
device, precision = sys.argv[1:]
device = {"gpu": "cuda"}.get(device, device)
size = 8192 if device == "cuda" else 1024
kind = torch.bfloat16 if precision == "bfloat16" else torch.float32
high = {"tf32": "high"}.get(precision, "highest")
torch.set_float32_matmul_precision(high)
a, b = (torch.rand(size, size, device=device).to(kind) for _ in range(2))
least = float("inf")
for _ in range(10):
    started = time.perf_counter()
    (a @ b)[0, 0].item()
    least = min(least, time.perf_counter() - started)
print(2 * size**3 / least)
"""


def command_of(side, case, arguments):
    """Returns the command that measures a case on one side."""
    options = [f"--device={arguments.device}", f"--steps={arguments.steps}"]
    options += ["--small"] if arguments.small else []
    options.append(json.dumps(dataclasses.asdict(case)))
    if side == SIDES[0]:
        return [sys.executable, HERE / "gpu_worker.py", *options]
    options += ["--compile"] if side == SIDES[2] else []
    return [arguments.peer_python, HERE / "peers" / "gpu_worker.py", *options]


def run(command, minutes):
    """Runs a command; returns its last line of output, or its error."""
    try:
        done = subprocess.run(
            list(map(str, command)),
            capture_output=True,
            text=True,
            timeout=60 * max(minutes, 0),
        )
    except subprocess.TimeoutExpired:
        return None, "no time was left"
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return None, lines[-1] if lines else f"exit status {done.returncode}"
    return done.stdout.strip().splitlines()[-1], None


def measured(side, case, arguments, minutes):
    """Returns a line of the results: the case, and what it took or its error.

    Args:
        side: One of `SIDES`.
        case: `gpu_cases.Case`.
        arguments: Arguments of the command line.
        minutes: Minutes that are left.
    """
    line = {"side": side, **dataclasses.asdict(case)}
    output, error = run(command_of(side, case, arguments), minutes)
    if error:
        return {**line, "error": error}
    answer = json.loads(output)
    for what in ("train", "infer"):
        seconds = answer.pop(what)
        line[f"{what}_seconds"] = statistics.median(seconds)
        line[f"{what}_range"] = [min(seconds), max(seconds)]
    return {**line, **answer}


def add_shares(line, peaks, arguments):
    """Adds texts and operations a second to a measured line."""
    case = gpu_cases.Case(
        **{f.name: line[f.name] for f in dataclasses.fields(gpu_cases.Case)}
    )
    precision = case.precision
    if precision not in peaks:
        command = [arguments.peer_python, "-c", _PEAK]
        output, _ = run([*command, arguments.device, precision], 1)
        peaks[precision] = float(output) if output else None
    for what in ("train", "infer"):
        seconds = line[f"{what}_seconds"]
        number = gpu_cases.operations(case, arguments.small, what == "train")
        line[f"{what}_texts_per_second"] = case.batch / seconds
        line[f"{what}_flops"] = number / seconds
    line["peak_flops"] = peaks[precision]


def table(lines):
    """Returns the Markdown table of measured lines.

    A ratio is compiled PyTorch's seconds over those of the line, or those of
    PyTorch as it is if that was not measured.
    """
    rows = [
        "| encoder | method | precision | texts | side | train, texts/s "
        "| share of peak | ratio | infer, texts/s | share of peak | ratio "
        "| GB |\n|" + "---|" * 12
    ]
    for line in lines:
        texts = f"{line['batch']} x {line['tokens']}"
        cells = [line["shape"], line["method"], line["precision"], texts]
        cells.append(line["side"])
        if "error" in line:
            cells += [line["error"][:80], *[""] * 6]
        else:
            for what in ("train", "infer"):
                cells += _numbers(line, lines, what)
            cells.append(f"{line['peak_bytes'] / 1e9:.2f}")
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _numbers(line, lines, what):
    """Returns texts a second, share of the peak and ratio as text."""
    key = f"{what}_seconds"
    names = [field.name for field in dataclasses.fields(gpu_cases.Case)]
    theirs = {
        other["side"]: other[key]
        for other in lines
        if key in other and all(other[name] == line[name] for name in names)
    }
    reference = theirs.get(SIDES[2], theirs.get(SIDES[1]))
    ratio = f"{reference / line[key]:.2f}" if reference else ""
    peak = line["peak_flops"]
    share = f"{100 * line[f'{what}_flops'] / peak:.0f}%" if peak else ""
    return [f"{line[f'{what}_texts_per_second']:,.0f}", share, ratio]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--peer_python", default=".venv-peer/bin/python")
    parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--sides", default=";".join(SIDES))
    parser.add_argument("--output", help="JSONL file of the results.")
    arguments = parser.parse_args()
    end = time.monotonic() + 60 * arguments.minutes
    lines, peaks, left_out = [], {}, 0
    for case in gpu_cases.cases(arguments.small):
        for side in arguments.sides.split(";"):
            minutes = (end - time.monotonic()) / 60
            if minutes <= 0:
                left_out += 1
                continue
            line = measured(side, case, arguments, minutes)
            if "error" not in line:
                add_shares(line, peaks, arguments)
            lines.append(line)
            print(json.dumps(line), file=sys.stderr, flush=True)
            if arguments.output:
                text = "".join(json.dumps(one) + "\n" for one in lines)
                Path(arguments.output).write_text(text, encoding="utf-8")
    print(table(lines))
    if left_out:
        print(f"\n{left_out} lines were left out: --minutes is over.")


if __name__ == "__main__":
    main()
