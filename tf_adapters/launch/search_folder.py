"""The folder of a search: its settings, its trials and the best trial."""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses
import json
from pathlib import Path
import shutil
from typing import Any

from tf_adapters.common import dataclass_config
from tf_adapters.common import own_files
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.common.text_files import read_json
from tf_adapters.common.text_files import replace_text
from tf_adapters.config import resolve
from tf_adapters.config import settings as config_settings
from tf_adapters.config.settings import Config
from tf_adapters.runs import folder_lock

JOURNAL, SETTINGS, BEST = "trials.log", "search.json", "best.json"
_TRIALS, _STATE = "trials", "trial.json"


class SearchFolder:
    """Reads and writes the files of a search, and locks its folder.

    Args:
        folder: Path of the folder. Created with its parents if it does not
            exist.
        overwrite: Whether to remove an earlier search. Default: `False`.

    Raises:
        ConfigError: If another process is using the folder.
    """

    def __init__(self, folder: Path, overwrite: bool = False) -> None:
        self.folder = Path(folder).expanduser()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = folder_lock.lock_folder(self.folder)
        if overwrite:
            self._check_is_a_searchs()
            for name in (JOURNAL, SETTINGS, BEST, _TRIALS):
                own_files.remove(self.folder / name)

    def _check_is_a_searchs(self) -> None:
        """Raises a `ConfigError` if no search wrote the folder `trials`."""
        is_searchs = any(
            (self.folder / name).exists() for name in (JOURNAL, SETTINGS)
        )
        if not is_searchs and (self.folder / _TRIALS).exists():
            self.close()
            raise ConfigError(
                f"{self.folder} holds `{_TRIALS}` but no {SETTINGS} of a "
                "search, so --overwrite would remove files that no search "
                "wrote. Give another --model_dir."
            )

    def close(self) -> None:
        """Releases the lock, so that another process may use the folder."""
        self._lock.release()

    @property
    def journal(self) -> Any:
        """Path of Optuna's journal file."""
        return self.folder / JOURNAL

    def check_same(
        self, config: Config, methods: Sequence[str], fingerprint: Any
    ) -> None:
        """Raises an error if the folder's search has other settings or data.

        Args:
            config: `Config` of a trial with the first method.
            methods: Names of the methods to search among.
            fingerprint: Dict from split to the fingerprint of its rows, see
                `sampling.fingerprints`.

        Raises:
            ConfigError: If settings or data differ. Lists the differences.
        """
        ours = _plain_settings(config, methods, fingerprint)
        path = self.folder / SETTINGS
        theirs = _read_mapping(path) if path.exists() else ours
        left_out = [
            key
            for key in theirs
            if key not in {*ours, *config_settings.ELSEWHERE} and _exists(key)
        ]
        lines = [
            f"  {key}: {shown(_given(theirs, key))} there, "
            f"{shown(_given(ours, key))} now"
            for key in (*ours, *left_out)
            if _given(theirs, key) != _given(ours, key)
        ]
        if lines:
            self.close()
            raise ConfigError(
                f"{self.folder} holds a search with other settings:\n"
                + "\n".join(lines)
                + "\nGive another --model_dir, or --overwrite to begin again."
            )
        replace_text(path, json.dumps(ours, indent=2) + "\n")

    def keep_tables(self, source: Any) -> Any:
        """Moves the temporary files of in-memory tables to the search's folder.

        Args:
            source: `TableFiles`.

        Returns:
            Nested dict of settings that name the files of all tables. For the
            moved files, it has the new paths.
        """
        for path in source.paths:
            tables = own_files.make_folder(self.folder, resolve.TABLES)
            own_files.remove_link(tables / path.name)
            shutil.move(path, tables / path.name)
        return source.moved_layer(self.folder)

    def of_trial(self, number: int) -> Path:
        """Returns the path of a trial's run folder."""
        # Optuna counts trials from 0, but folder names count from 1.
        return self.folder / _TRIALS / f"{number + 1:03d}"

    def read_trial(self, number: int) -> tuple[Any, ...]:
        """Returns a trial's settings and the number of times it was started.

        For a trial that was never started, these are `None` and 0. Trials are
        numbered from 0.
        """
        path = self.of_trial(number) / _STATE
        if not path.exists():
            return None, 0
        state = _read_mapping(path)
        settings, starts = state.get("settings"), state.get("starts")
        if not isinstance(settings, dict) or type(starts) is not int:
            raise _damaged(path, "expected `settings` and `starts`")
        return settings, starts

    def write_trial(
        self, number: int, layer: dict[str, Any], starts: Any
    ) -> Path:
        """Stores a trial's settings and number of starts, for `read_trial`.

        Args:
            number: Number of the trial, from 0.
            layer: Nested dict of the trial's settings.
            starts: Number of times that the trial was started.

        Returns:
            Path of the trial's folder.
        """
        name = self.of_trial(number).name
        folder = own_files.make_folder(self.folder, _TRIALS, name)
        state = {"settings": layer, "starts": starts}
        replace_text(folder / _STATE, json.dumps(state) + "\n")
        return folder

    def write_best(self, values: dict[str, Any]) -> None:
        """Writes `values`, which describe the best trial, to `best.json`."""
        text = json.dumps(values, indent=2) + "\n"
        replace_text(self.folder / BEST, text)


def _read_mapping(path: Path) -> dict[str, Any]:
    """Returns the dict in a JSON file of a search."""
    try:
        content = read_json(path)
    except UserError as error:
        raise _damaged(path, error) from error
    if not isinstance(content, dict):
        raise _damaged(path, "expected a mapping")
    return content


def _damaged(path: Path, reason: object) -> ConfigError:
    return ConfigError(
        f"{path} is damaged: {reason}. Copy it again from where the search "
        "ran, or give --overwrite to begin again."
    )


def _plain_settings(
    config: Config, methods: Sequence[str], fingerprint: Any
) -> dict[Any, Any]:
    """Returns the settings that identify a search, as a flat dict.

    Its values can be stored as JSON. See `SearchFolder.check_same` for the
    arguments.
    """
    flat = dataclass_config.flatten(resolve.to_dict(config))
    kept = {k: v for k, v in flat.items() if k not in config_settings.ELSEWHERE}
    kept |= {"methods": methods, "data": fingerprint}
    return json.loads(json.dumps(kept))


def _exists(key: str) -> bool:
    """Returns whether a setting that is left out now could still be given.

    Earlier versions stored settings that no longer exist. A method's settings
    are never left out.

    Args:
        key: Dotted name of the setting.
    """
    section, _, name = key.partition(".")
    value = getattr(Config, section, None)
    if dataclasses.is_dataclass(value):
        return hasattr(value, name.partition(".")[0])
    return section != "method" and section in Config.__dataclass_fields__


def _given(settings: dict[str, Any], key: str) -> Any:
    return settings[key] if key in settings else _default(key)


def _default(key: str) -> Any:
    """Returns a setting's default, which an earlier version had instead of it.

    Args:
        key: Dotted name of the setting. `None` is returned for settings of
            methods and heads.
    """
    value: Any = Config
    for name in key.split("."):
        value = getattr(value, name, None)
    # A section, whose settings have keys of their own.
    if dataclasses.is_dataclass(value):
        return None
    return json.loads(json.dumps(value))
