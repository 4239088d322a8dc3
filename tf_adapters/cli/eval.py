"""`tf-adapters eval RUN`: the metrics of a finished run, computed again."""

from tf_adapters.cli import summary
from tf_adapters.cli.command import Command
from tf_adapters.cli.command import on_run


def run(options, layer, arguments):
    """Evaluates the run that is named; returns the exit status."""
    from tf_adapters.cli import main

    return main.run_command(layer, on_run("eval", options, arguments))


def evaluate(config, model_dir, options):
    """Prints the metrics of a run, see `main.run_command`."""
    from tf_adapters.runs import finished_run

    summary.print_evaluation(
        finished_run.evaluate_run(config, model_dir), config
    )


COMMAND = Command(
    name="eval",
    summary="Evaluates a finished run on its validation and test data.",
    usage="RUN",
    examples=(
        "tf-adapters eval runs/reviews_houlsby_0",
        "tf-adapters eval runs/reviews_houlsby_0 --data=moved.csv",
        "tf-adapters eval runs/pos --eval_languages=de,hi",
    ),
    groups={
        "Data, where it has moved": (
            *("data", "validation", "test", "data_dir", "task_file", "task"),
            *("eval_languages", "max_length"),
        ),
        "Settings": (
            *("encoder", "precision", "stack_on", "distribution_strategy"),
            *("tpu", "config_file", "params_override", "plugin", "verbose"),
        ),
    },
    run=run,
    defaults={
        name: "the run's"
        for name in ("encoder", "precision", "max_length", "data_dir")
    },
)
