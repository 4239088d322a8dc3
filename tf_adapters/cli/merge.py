r"""`tf-adapters merge`: one adapter of several, without training.

tf-adapters merge --adapters=runs/a,runs/b --model_dir=runs/merged
tf-adapters merge --adapters=runs/a,runs/b --model_dir=runs/merged \
    --how=output_sum --weights=search

The result is a run folder for --mode=eval, predict and export. Its task, head
and data are those of the last adapter's run, or of --head_of.
"""

import argparse

from tf_adapters.cli import errors as cli_errors
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import cut
from tf_adapters.runs import remote_folder


def run(arguments):
    """Runs the command; returns the exit status.

    Args:
        arguments: List of strings, what stands behind `merge`.
    """
    options = _parser().parse_args(arguments)
    return cli_errors.exit_status(_merge, options)


def _merge(options):
    weights = _weights(options)
    # Here, since they take seconds.
    from tf_adapters.cli import summary
    from tf_adapters.runs import merged_run

    settings = merged_run.MergeSettings(
        how=options.how,
        weights=weights,
        head_of=options.head_of,
        rank=options.rank,
        texts=options.texts,
        examples=options.examples,
        evaluations=options.evaluations,
    )
    adapters = options.adapters.split(",")
    target = None
    if options.data_dir:
        folder = options.head_of or adapters[-1]
        target = merged_run.MergeTarget(folder, options.data_dir)
    model_dir = remote_folder.local(options.model_dir)
    result = merged_run.merge_runs(
        adapters, model_dir, settings, target, options.overwrite
    )
    summary.print_merge(result, model_dir)


def _weights(options):
    if options.weights in (None, "search"):
        return options.weights
    try:
        return tuple(float(one) for one in options.weights.split(","))
    except ValueError as error:
        raise ConfigError(
            "--weights is a number for each adapter, as in --weights=0.7,0.3, "
            f"or `search`. Received: --weights={cut(options.weights)}"
        ) from error


def _positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is below 1")
    return number


def _parser():
    parser = argparse.ArgumentParser(
        prog="tf-adapters merge",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--adapters", required=True, help="run folders, with commas between"
    )
    parser.add_argument(
        "--model_dir", required=True, help="run folder of the merged adapter"
    )
    parser.add_argument(
        "--how",
        default="mean",
        help="mean (default), matched_mean, sum, output_mean or output_sum: "
        "see docs/guide.md",
    )
    parser.add_argument(
        "--weights",
        help="a number for each adapter, or `search` (LoraHub): sums whose "
        "loss on a few training examples is small",
    )
    parser.add_argument(
        "--head_of",
        help="which of --adapters gives task, head and data; default: the last",
    )
    parser.add_argument(
        "--rank",
        type=_positive,
        help="rank to cut the products of LoRAs to, with output_mean and "
        "output_sum",
    )
    parser.add_argument(
        "--texts",
        type=_positive,
        default=256,
        help="training texts that units are matched by; default: 256",
    )
    parser.add_argument(
        "--examples",
        type=_positive,
        default=64,
        help="training examples of the search; default: 64",
    )
    parser.add_argument(
        "--evaluations",
        type=_positive,
        default=40,
        help="evaluations of the search; default: 40",
    )
    parser.add_argument(
        "--data_dir", help="where the data are, if they have moved"
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace a run in --model_dir"
    )
    return parser
