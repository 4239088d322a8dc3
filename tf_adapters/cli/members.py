"""Trains the adapters that a fusion combines, if the command names none.

These adapters are the fusion's members.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
import types
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.errors import ConfigError
from tf_adapters.config import settings as config_settings
from tf_adapters.runs import remote_folder

if TYPE_CHECKING:
    from tf_adapters.config.settings import Config


def check_members_train(config: Config, model_dir: Path) -> None:
    """Raises an error if the members of a fusion cannot be trained.

    Does nothing if the run does not train members. Call this function before
    reading data, so that a command fails early.

    Raises:
        ConfigError: If the run folder is on a remote file system, such as
            `gs://bucket/run`.
        DataError: If the data of a member are missing.
    """
    # Imported here, so that --help is fast.
    from tf_adapters.launch import member_plan

    if not member_plan.trains_members(config):
        return
    _check_is_local(model_dir)
    from tf_adapters.launch import fusion_members

    fusion_members.check_members_data(config)


def with_members(
    config: Config,
    model_dir: Path,
    options: Any,
    train: Callable[[Config, Path, Any], None],
) -> Config:
    """Trains a fusion's members; adds their paths to the fusion's `Config`.

    Members are stored in the folder `members`, next to the fusion's folder,
    where fusions for other tasks find them too. Returns the new `Config`. If
    the run is not a fusion, or already names trained adapters, returns `config`
    unchanged.

    Args:
        config: `Config` of the run.
        model_dir: Path of the fusion's run folder.
        options: See `main.run_command`.
        train: Function that trains a run in this process, with the same
            arguments. It is used on a TPU and on several workers. Otherwise,
            members are trained in processes of their own.
    """
    # Imported here, so that --help is fast.
    from tf_adapters.launch import member_plan

    if not member_plan.trains_members(config):
        return config
    _check_is_local(model_dir)
    folder = model_dir.parent / "members"
    if config.distribution_strategy in config_settings.CLUSTERS:
        from tf_adapters.launch import cluster_members

        own = types.SimpleNamespace(mode="train_and_eval", overwrite=False)
        return cluster_members.train_members(
            config, folder, lambda one, path: train(one, path, own)
        )
    from tf_adapters.launch import fusion_members

    return fusion_members.train_members(
        config, folder, processes=options.study_processes or 1
    )


def _check_is_local(model_dir: Path) -> None:
    if remote_folder.address(model_dir) != str(model_dir):
        raise ConfigError(
            "Without --adapters, a fusion first trains its members, in folders "
            "next to its own. This does not work with an address as "
            "--model_dir. Train each member with a command of its own, and "
            "give their folders as --adapters."
        )
