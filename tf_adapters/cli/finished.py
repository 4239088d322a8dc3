"""Finds the result of a finished run, so that it is not trained again."""

from tf_adapters.config import settings as config_settings

# Values that are printed for a run of several tasks, of one task, and for a
# search.
_SHOWN_OF_TASKS = ("examples_per_second", "padding_share", "seconds")
_SHOWN = ("encoder_weights", *_SHOWN_OF_TASKS)
_SHOWN_OF_SEARCH = ("settings", "trials", "trained_weights")


def check_shown(result, model_dir):
    """Raises a `ConfigError` if a result lacks a value that is printed."""
    shown = _SHOWN_OF_SEARCH
    if "best_trial" not in result:
        shown = _SHOWN_OF_TASKS if "tasks" in result else _SHOWN
    lacking = [key for key in shown if key not in result]
    if lacking:
        from tf_adapters.runs import earlier_runs

        raise earlier_runs.damaged_result(model_dir, f"it lacks `{lacking[0]}`")


def find_finished(config, model_dir, fingerprints):
    """Returns the result of a finished run, or `None`.

    Args:
        config: `Config`.
        model_dir: Path of the run folder.
        fingerprints: See `TaskData`; of several tasks, a dict from task to
            that.

    Raises:
        ConfigError: See `earlier_runs.finished`.
    """
    if config.distribution_strategy in config_settings.CLUSTERS:
        # The chief decides. Without a shared folder, others cannot see the run.
        from tf_adapters.runs import run_folder_of_workers
        from tf_adapters.runs import strategies
        from tf_adapters.training import workers

        strategy = strategies.strategy_of(config)
        with workers.losses_as_stops(strategy):
            return run_folder_of_workers.finished(
                strategy, model_dir, config, fingerprints
            )
    if not model_dir.exists():
        return None
    from tf_adapters.runs import earlier_runs

    return earlier_runs.finished(model_dir, config, fingerprints)
