"""The live server next to PEFT and to one SavedModel for each task, in turn.

    python benchmarks/serving_peers.py --peer_python=.venv-peer/bin/python
    python benchmarks/serving_peers.py --adapters=8,200 --saved_models=8

All adapters are LoRA, which is what PEFT can mix in a batch, with heads of two
labels, on `minilm`, of the same weights on all sides. Clients, texts and the
check of each answer are those of `serving_load.py`. The sides:

- ours: `tf-adapters serve`;
- PEFT, `adapter_names`: a batch that mixes adapters;
- PEFT, `set_adapter`: a call for each adapter of a batch, with a switch before;
- SavedModels: one for each task in one process, a call for each in a batch.

The last three have a small HTTP server of the standard library in the process
that computes, which batches as ours does (`small_server.py`). They do not
limit, log or count requests, load adapters while they serve, or outlive a
crash.

The sides take turns, and the spread is over the turns. While a peer answers,
our server waits, which takes a few percent of a core. Memory is that of all
processes of a side.
"""

import argparse
import os
from pathlib import Path
import signal
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # As train.py does.
sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]

import load_adapters  # noqa: E402
import load_clients  # noqa: E402
import load_servers  # noqa: E402
import numpy as np  # noqa: E402
import serving_load  # noqa: E402

HERE = Path(__file__).parent
WAYS = ("adapter_names", "set_adapter")


def write_also(folder, saved_models):
    """Returns a function that writes an adapter for the other sides.

    Args:
        folder: Path. Adapters of PEFT are written into `peft`, and SavedModels
            into `saved_models`.
        saved_models: Number of SavedModels.
    """
    from safetensors.numpy import save_file

    import tf_adapters
    from tf_adapters.export import saved_model

    def write(name, model, packer):
        path = folder / "peft" / name
        tf_adapters.save_adapter(model, path, format="peft", with_head=False)
        head = {
            key: value.numpy()
            for key, value in model.trained_variables().items()
            if key.startswith("head/")
        }
        save_file(head, path / "head.safetensors")
        if int(name.rpartition("_")[2]) < saved_models:
            target = folder / "saved_models" / name
            saved_model.export_model(model, packer, target, ("text",))

    return write


def start(folder, names, arguments):
    """Starts a server for each side.

    Returns:
        Dict from the name of a side to its `load_servers.Server`.
    """
    from tf_adapters.encoders import minilm

    chosen = folder / f"peft_{len(names)}"
    chosen.mkdir()
    for name in names:
        (chosen / name).symlink_to(folder / "peft" / name)
    servers = {"ours": load_servers.serve(folder, names, extra=16)}
    for way in WAYS:
        command = [
            *(arguments.peer_python, HERE / "peers" / "lora_server.py"),
            *(f"--encoder={minilm.minilm_folder()}", f"--adapters={chosen}"),
            f"--way={way}",
        ]
        servers[f"PEFT, `{way}`"] = load_servers.Server(command, names)
    if len(names) <= arguments.saved_models:
        command = [
            *(sys.executable, HERE / "saved_models_server.py"),
            f"--models={folder / 'saved_models'}",
        ]
        servers["SavedModels"] = load_servers.Server(command, names)
    return servers


def report(number, servers, found, counts):
    """Prints a line of the table for each side."""
    ours = found["ours", "zipf", False][:, 0]
    for (name, _, _), rows in found.items():
        speed, middle, last = np.median(rows, axis=0)
        low, high = np.percentile(rows[:, 0], (25, 75))
        print(
            f"| {number} | {name} | {speed:.0f} ± {(high - low) / 2:.0f} | "
            f"{np.median(ours / rows[:, 0]):.2f} | {1e3 * middle:.0f} | "
            f"{1e3 * last:.0f} | {servers[name].megabytes() / 1e3:.2f} |",
            flush=True,
        )
    print(f"answers: {dict(counts)}", file=sys.stderr)


def compare(number, folder, load, arguments):
    """Measures all sides with one number of adapters."""
    names = [f"adapter_{index}" for index in range(number)]
    servers = start(folder, names, arguments)
    try:
        for server in servers.values():
            server.wait()
        cases = [(name, "zipf", False) for name in servers]
        found, counts = serving_load.measure(
            servers, cases, load, arguments.turns, folder
        )
        report(number, servers, found, counts)
    finally:
        for server in servers.values():
            server.end()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--peer_python", default=".venv-peer/bin/python")
    parser.add_argument("--adapters", default="8,200")
    parser.add_argument("--saved_models", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--turns", type=int, default=5)
    arguments = parser.parse_args()
    # So that the servers end with this process.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    numbers = list(map(int, arguments.adapters.split(",")))
    texts = load_adapters.make_texts(arguments.tokens)
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        answers = load_adapters.write(
            *(folder, ["lora"], max(numbers), texts),
            write_also(folder, arguments.saved_models),
        )
        load = load_clients.Load(
            texts, answers, arguments.clients, arguments.seconds
        )
        print(
            "| adapters | | texts/s | ours over theirs | p50, ms | p99, ms "
            "| GB of memory |\n|---|---|---|---|---|---|---|"
        )
        for number in numbers:
            compare(number, folder, load, arguments)


if __name__ == "__main__":
    main()
