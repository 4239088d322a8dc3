"""Merging adapters without training, compared with AdapterFusion.

    python benchmarks/merging.py --data_dir=<folder> --out=runs/merging

Trains an adapter of each task with each seed, merges those of different seeds
in every way, trains AdapterFusion over the same adapters, and prints a table
for each method: the metric on the target's validation split, which nothing is
chosen by, as mean and deviation over the seeds. The seconds are the median over
them; those of a merge and of a fusion leave their members' training out. Runs
that lie in `--out` already are not trained again.
"""

import argparse
import functools
import json
from pathlib import Path
import statistics

# Name in the table: settings of `MergeSettings`. `others` is the weight of all
# but the target; for `members` see `members_of`.
WAYS = {
    "output mean": {"how": "output_mean"},
    "weight mean": {"how": "mean"},
    "matched mean": {"how": "matched_mean"},
    "weight mean, one start": {"how": "mean", "members": "one_start"},
    "matched mean, one start": {"how": "matched_mean", "members": "one_start"},
    "target plus 0.3 of each other": {"how": "output_sum", "others": 0.3},
    "target minus 0.3 of each other": {"how": "output_sum", "others": -0.3},
    "search, of outputs": {"how": "output_sum", "weights": "search"},
    "search, of weights (LoraHub's)": {"how": "sum", "weights": "search"},
    "output mean, target's seeds": {"how": "output_mean", "members": "seeds"},
    "weight mean, target's seeds": {"how": "mean", "members": "seeds"},
    "matched mean, target's seeds": {
        "how": "matched_mean",
        "members": "seeds",
    },
}
# Only of LoRAs.
CUT = {"output mean, rank of one": {"how": "output_mean", "rank": 8}}


def train(options, folder, settings):
    """Trains as `train.py --mode=train`, unless that is done already."""
    import keras

    from tf_adapters.config import resolve
    from tf_adapters.runs import task_data
    from tf_adapters.runs.training_run import train_experiment

    if not (folder / "result.json").exists():
        keras.utils.clear_session()
        layers = map(resolve.parse_override, options.params_override)
        data = {"data": {"data_dir": str(options.data_dir)}}
        config = resolve.resolve_config(data, *layers, settings)
        data = task_data.load_task_data(config)
        train_experiment(config, data, folder, test=False, overwrite=True)
    return read_result(folder)


def read_result(folder):
    """Returns the result of a run."""
    return json.loads((folder / "result.json").read_text(encoding="utf-8"))


def settings_of(options, task, seed, method, learning_rate):
    """Returns the settings of a task's run."""
    examples, epochs = options.sizes[task]
    # What the others reach is read by nobody.
    validation = 500 if task == options.target else 50
    return {
        "task": task,
        "method": method,
        "seed": seed,
        "data": {
            "max_train_examples": examples,
            "max_validation_examples": validation,
        },
        "train": {"epochs": epochs, "learning_rate": learning_rate},
    }


def members_of(options, replicate, which="tasks"):
    """Returns task and seed of each of a merge's members, the target's last.

    Args:
        options: The script's.
        replicate: The seed of the target's adapter.
        which: `"tasks"` (default): one of each task, of different seeds;
            `"one_start"`: one of each task, of one seed, so that all began with
            the same weights; `"seeds"`: the target's of all seeds.
    """
    target = (options.target, replicate)
    if which == "seeds":
        others = [s for s in range(options.seeds) if s != replicate]
        return [*((options.target, seed) for seed in others), target]
    count = max(len(options.sizes), options.seeds)
    seeds = [
        replicate if which == "one_start" else (replicate + 1 + place) % count
        for place in range(len(options.others))
    ]
    return [*zip(options.others, seeds, strict=True), target]


def folders_of(options, method, members):
    """Returns the run folders of members."""
    return [options.out / method / f"{task}_{seed}" for task, seed in members]


def ways_of(options, method):
    """Returns the ways to merge adapters of a method, those asked for."""
    ways = {**WAYS, **(CUT if method == "lora" else {})}
    return {k: v for k, v in ways.items() if k in (options.ways or ways)}


def train_members(options, method):
    """Trains all members of all merges of a method."""
    ways = ways_of(options, method).values()
    for which in sorted({way.get("members", "tasks") for way in ways}):
        for replicate in range(options.seeds):
            members = members_of(options, replicate, which)
            folders = folders_of(options, method, members)
            for (task, seed), folder in zip(members, folders, strict=True):
                settings = settings_of(
                    options, task, seed, method, options.learning_rate
                )
                train(options, folder, settings)


@functools.lru_cache(maxsize=1)
def target_of(folder):
    """Returns the `MergeTarget` of a run, which its merges share."""
    from tf_adapters.runs import merged_run

    return merged_run.MergeTarget(folder)


def merge(options, method, name, way, replicate):
    """Returns the result of one merge."""
    from tf_adapters.runs import merged_run

    way = dict(way)
    members = members_of(options, replicate, way.pop("members", "tasks"))
    others = way.pop("others", None)
    if others is not None:
        way["weights"] = (*[others] * (len(members) - 1), 1.0)
    short = "".join(c if c.isalnum() else "_" for c in name)
    folder = options.out / method / f"{short}_{replicate}"
    if not (folder / "result.json").exists():
        folders = folders_of(options, method, members)
        merged_run.merge_runs(
            folders,
            folder,
            merged_run.MergeSettings(**way),
            target_of(folders[-1]),
            overwrite=True,
        )
    return read_result(folder)


def fuse(options, method, replicate):
    """Returns the result of AdapterFusion over the same members."""
    members = folders_of(options, method, members_of(options, replicate))
    fusion = {"name": "fusion", "adapters": list(map(str, members))}
    settings = settings_of(
        options, options.target, replicate, fusion, options.fusion_learning_rate
    )
    return train(
        options, options.out / method / f"fusion_{replicate}", settings
    )


def print_row(name, results, trained, stored, seconds):
    """Prints a line of the table."""
    metric = next(iter(results[0]["validation"]))
    values = [100 * result["validation"][metric] for result in results]
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    print(
        f"| {name} | {statistics.mean(values):.1f} ± {spread:.1f} "
        f"| {trained:,} | {stored:,} | {statistics.median(seconds):.1f} |",
        flush=True,
    )


def own_weights(result):
    """Returns how many weights a run trained without its head."""
    return result["trained_weights"] - result["head_weights"]


def print_table(options, method):
    """Merges in every way and prints the table of a method."""
    print(
        f"\n{method}, validation of {options.target}:\n\n"
        "| way | metric | trained for it | adapter | seconds |\n"
        "|---|---|---|---|---|"
    )
    replicates = range(options.seeds)
    alone = [
        read_result(folders_of(options, method, [(options.target, seed)])[0])
        for seed in replicates
    ]
    own = own_weights(alone[0])
    seconds = [result["training_seconds"] for result in alone]
    print_row("the target's adapter alone", alone, own, own, seconds)
    ways = ways_of(options, method)
    found = {
        (replicate, name): merge(options, method, name, way, replicate)
        for replicate in replicates
        for name, way in ways.items()
    }
    for name, way in ways.items():
        results = [found[replicate, name] for replicate in replicates]
        trained = len(options.sizes) * ("weights" in way)
        stored = results[0]["merged"]["adapter_weights"]
        seconds = [result["merging_seconds"] for result in results]
        print_row(name, results, trained, stored, seconds)
    if method != "lora":
        results = [fuse(options, method, replicate) for replicate in replicates]
        trained = own_weights(results[0])
        stored = trained + len(options.sizes) * own
        seconds = [result["training_seconds"] for result in results]
        print_row("AdapterFusion", results, trained, stored, seconds)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data_dir", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("runs/merging"))
    parser.add_argument("--target", default="sick")
    parser.add_argument(
        "--tasks",
        default="mnli:1000:1,qqp:1000:1,sst2:1000:1,sick:400:5",
        help="task:training examples:epochs, with commas between",
    )
    parser.add_argument("--methods", default="pfeiffer,lora")
    parser.add_argument(
        "--ways",
        type=lambda text: text.split(";"),
        help="names in the table, with semicolons between; default: all",
    )
    parser.add_argument("--seeds", type=int, default=3)
    # As in the study `adapterfusion_minilm`.
    parser.add_argument("--learning_rate", type=float, default=2e-3)
    parser.add_argument("--fusion_learning_rate", type=float, default=1e-3)
    parser.add_argument(
        "--params_override",
        action="append",
        default=[
            "data.max_length=64,train.keep=last,train.encoder_dropout=false"
        ],
    )
    options = parser.parse_args()
    sizes = [one.split(":") for one in options.tasks.split(",")]
    options.sizes = {task: (int(n), int(e)) for task, n, e in sizes}
    options.others = [task for task in options.sizes if task != options.target]
    options.out = options.out.absolute()
    for method in options.methods.split(","):
        train_members(options, method)
        print_table(options, method)


if __name__ == "__main__":
    main()
