"""What a measurement depends on: processor, commit and versions."""

import importlib.metadata
import json
import os
from pathlib import Path
import re
import subprocess
import time

_CPU_INFO = Path("/proc/cpuinfo")
_CPU_TIMES = Path("/proc/stat")
# Instructions that decide how fast matrices are multiplied.
_INSTRUCTIONS = (
    *("avx2", "avx512f", "avx_vnni", "avx512_vnni", "avx512_bf16"),
    *("amx_bf16", "amx_int8"),
)
_OURS = ("tensorflow", "keras", "keras-hub", "numpy", "onnxruntime", "openvino")
_THEIRS = ("torch", "transformers", "adapters", "peft")
_PEER_VERSIONS = """
import importlib.metadata, json, sys
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        continue
print(json.dumps(found))
"""
_PEER_PAGE = "benchmarks/peers/README.md"


def processor():
    """Returns model, family, number of cores and instructions as text."""
    text = _CPU_INFO.read_text() if _CPU_INFO.exists() else ""
    fields = dict(re.findall(r"^([\w ]+?)\s*: (.*)$", text, re.M))
    flags = fields.get("flags", "").split()
    known = " ".join(name for name in _INSTRUCTIONS if name in flags)
    name = fields.get("model name", "unknown processor")
    family = f"family {fields.get('cpu family')}, model {fields.get('model')}"
    return f"{name} ({family}), {os.cpu_count()} cores, {known}"


def busy_share(seconds=2):
    """Returns how busy other programs keep the cores, from 0 to 1.

    Args:
        seconds: How long to look.
    """
    before = _processor_times()
    time.sleep(seconds)
    used, idle = (
        y - x for x, y in zip(before, _processor_times(), strict=True)
    )
    return used / (used + idle) if used + idle else 0.0


def _processor_times():
    """Returns the time of all cores in use, and idle, since the start."""
    if not _CPU_TIMES.exists():
        return 0, 0
    numbers = _CPU_TIMES.read_text().splitlines()[0].split()[1:9]
    user, nice, system, idle, waiting, *others = map(int, numbers)
    return user + nice + system + sum(others), idle + waiting


def commit(root):
    """Returns the short commit of a checkout, "-changed" if code differs."""

    def git(*command):
        done = subprocess.run(
            ["git", *command], cwd=root, capture_output=True, text=True
        )
        return done.returncode, done.stdout.strip()

    code, found = git("rev-parse", "--short=8", "HEAD")
    if code:
        return "unknown"
    measured = ("tf_adapters", "benchmarks", ":!benchmarks/results")
    changed, _ = git("diff", "--quiet", "HEAD", "--", *measured)
    return f"{found}-changed" if changed else found


def versions(peer_python):
    """Returns the versions of the packages that are measured, by name.

    Args:
        peer_python: Path of the Python with PyTorch, or `None`.
    """
    found = {}
    for name in _OURS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    if peer_python:
        found |= _peer_versions(peer_python)
    return found


def _peer_versions(python):
    """Returns those of PyTorch's packages that a Python has, by name."""
    command = [python, "-c", _PEER_VERSIONS, *_THEIRS]
    # What it writes to standard error is for the person who started this.
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def peer_problem(python):
    """Returns why a Python cannot be compared with, as a sentence, or `None`.

    Args:
        python: Path of the Python with PyTorch.
    """
    try:
        found = _peer_versions(python)
    # A Python that prints something else has no JSON, a `ValueError`.
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        return f"{python} does not run ({error}); see {_PEER_PAGE}."
    missing = [f"`{name}`" for name in _THEIRS if name not in found]
    if missing:
        return f"{python} lacks {', '.join(missing)}; see {_PEER_PAGE}."
    return None
