"""The adapters that a fusion trains first, where it is given none."""

from tf_adapters.common.errors import ConfigError
from tf_adapters.config import settings as config_settings
from tf_adapters.runs import remote_folder


def _trains_members(config):
    """Whether this is a fusion that names no trained adapters."""
    from tf_adapters import methods

    is_fusion = isinstance(config.method, methods.Fusion)
    return is_fusion and not config.method.adapters and config.members.tasks


def check_members(config, model_dir):
    """Refuses a fusion whose members cannot train, before any data are read."""
    if not _trains_members(config):
        return
    _check_members_train_here(config, model_dir)
    from tf_adapters.launch import fusion_members

    fusion_members.check_members_data(config)


def with_members(config, model_dir, options):
    """Returns a fusion's configuration with adapters, trained if it has none.

    They lie beside the fusion's folder, where those of other tasks find them.
    """
    if not _trains_members(config):
        return config
    _check_members_train_here(config, model_dir)
    from tf_adapters.launch import fusion_members

    folder = model_dir.parent / "members"
    return fusion_members.train_members(
        config, folder, processes=options.study_processes or 1
    )


def _check_members_train_here(config, model_dir):
    is_elsewhere = remote_folder.address(model_dir) != str(model_dir)
    if is_elsewhere or config.distribution_strategy in config_settings.CLUSTERS:
        raise ConfigError(
            "A fusion without --adapters trains them in processes of this "
            "machine, beside its own folder: not at an address, nor with "
            f"--distribution_strategy={config.distribution_strategy}. Train "
            "them first, each with a command of its own, and give their "
            "folders as --adapters."
        )
