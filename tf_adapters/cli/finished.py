"""The result of a run that a training command finds finished."""

from tf_adapters.config import settings as config_settings

# What is printed of a finished run of one task, of several, and of a search.
_SHOWN_OF_TASKS = ("examples_per_second", "padding_share", "seconds")
_SHOWN = ("encoder_weights", *_SHOWN_OF_TASKS)
_SHOWN_OF_SEARCH = ("settings", "trials", "trained_weights")


def check_shown(result, model_dir):
    """Refuses a result that lacks a value which is printed."""
    shown = _SHOWN_OF_SEARCH
    if "best_trial" not in result:
        shown = _SHOWN_OF_TASKS if "tasks" in result else _SHOWN
    lacking = [key for key in shown if key not in result]
    if lacking:
        from tf_adapters.runs import earlier_runs

        raise earlier_runs.damaged_result(model_dir, f"it lacks `{lacking[0]}`")


def find_finished(config, model_dir, fingerprint):
    """Returns the result of a run that is finished, or `None`."""
    if config.distribution_strategy in config_settings.CLUSTERS:
        # The chief decides: without a common folder the others have none.
        from tf_adapters.runs import run_folder_of_workers
        from tf_adapters.training import distribution
        from tf_adapters.training import workers

        strategy = distribution.strategy_for_config(config)
        with workers.losses_as_stops(strategy):
            return run_folder_of_workers.finished(
                strategy, model_dir, config, fingerprint
            )
    if not model_dir.exists():
        return None
    from tf_adapters.runs import earlier_runs

    return earlier_runs.finished(model_dir, config, fingerprint)
