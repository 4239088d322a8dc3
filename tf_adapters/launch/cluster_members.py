"""Trains a fusion's members on a TPU or on several workers.

A second process could not use the devices of the first one. The members are
therefore trained one after the other, by the process that then trains the
fusion. If there are several workers, all of them do this together.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tf_adapters.common.errors import ConfigError
from tf_adapters.launch import fusion_members
from tf_adapters.launch import member_plan
from tf_adapters.runs import run_folder_of_workers
from tf_adapters.runs import strategies
from tf_adapters.training import workers

if TYPE_CHECKING:
    from collections.abc import Sequence

    import tensorflow as tf

    from tf_adapters.config.settings import Config
    from tf_adapters.launch.planned_run import Run


def train_members(
    config: Config, folder: Path, train: Callable[[Config, Path], None]
) -> Config:
    """Trains the adapters that a fusion combines, unless they are finished.

    Every worker must call this function.

    Args:
        config: `Config` of a fusion that does not name its adapters.
        folder: See `fusion_members.train_members`. All workers must share it.
        train: Function that trains a run in this process, given its `Config`
            and the path of its run folder.

    Returns:
        `Config` of the fusion, with the paths of the trained adapters.

    Raises:
        ConfigError: If the workers do not share the folder.
        DataError: If the data of a member are missing.
    """
    fusion_members.check_members_data(config)
    runs = member_plan.plan_members(config)
    folder = Path(folder).absolute()
    own = folder / member_plan.digest(runs)
    strategy = strategies.strategy_of(config)
    with workers.losses_as_stops(strategy):
        found = run_folder_of_workers.from_chief(
            strategy, lambda: _finished(runs, folder, own)
        )
        _check_shared(strategy, own)
    missing = [run for run in runs if found[run.id] is None]
    if missing:
        print(fusion_members.stage(config, runs), flush=True)
    for run in missing:
        print(f"Training the adapter of {run.id}.", flush=True)
        train(run.config, own / run.id)
    folders = [found[run.id] or own / run.id for run in runs]
    return fusion_members.with_adapters(config, runs, list(map(Path, folders)))


def _finished(
    runs: Sequence[Run], folder: Path, own: Path
) -> dict[str, str | None]:
    """Returns the folder of each finished run, by the run's id, or `None`.

    Creates the folder `own` for the runs that are not finished.
    """
    own.mkdir(parents=True, exist_ok=True)
    found = fusion_members.find_trained(runs, folder)
    return {name: path and str(path) for name, path in found.items()}


def _check_shared(strategy: tf.distribute.Strategy, folder: Path) -> None:
    """Raises a `ConfigError` on every worker if one lacks the chief's folder.

    Args:
        strategy: `tf.distribute.Strategy`.
        folder: Path of a folder that the chief has created.
    """
    if workers.any_of(strategy, not folder.is_dir()):
        raise ConfigError(
            "Without --adapters, a fusion first trains its members, whose "
            f"adapters all workers then read. Not all of them have {folder}. "
            "Give a --model_dir in a folder that all workers share, or trained "
            "adapters as --adapters."
        )
