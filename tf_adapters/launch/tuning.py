"""Searches with Optuna for the settings with the best validation metric.

Each trial is a run in its own folder. Optuna's journal is stored next to the
trials, so that the same command resumes a stopped search and its stopped trial.
"""

from collections.abc import Iterable
from collections.abc import Sequence
import contextlib
import dataclasses
import gc
import math
import time
import traceback
from typing import TYPE_CHECKING
from typing import Any

import keras

from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import Stopped
from tf_adapters.common.errors import cut
from tf_adapters.common.text_files import replace_text
from tf_adapters.config import resolve
from tf_adapters.config import settings as config_settings
from tf_adapters.launch import table_settings
from tf_adapters.launch import trial_settings
from tf_adapters.launch.search_folder import SearchFolder
from tf_adapters.launch.search_journal import SearchJournal
from tf_adapters.launch.search_journal import import_optuna
from tf_adapters.runs import earlier_runs
from tf_adapters.runs import summary
from tf_adapters.runs import task_data
from tf_adapters.runs import whole_run

if TYPE_CHECKING:
    from tf_adapters.config.settings import Config
    from tf_adapters.runs.task_data import TaskData


_SPLITS = ("train", "validation")
# A trial is recorded as failed after its process has died this many times.
_MOST_STARTS = 3


@dataclasses.dataclass(frozen=True)
class Best:
    """The best trial of a search.

    Attributes:
        number: Number of the trial, from 1.
        layer: Nested dict of the trial's settings.
        metric: Name of the metric by which trials are compared.
        value: Value of the metric on the validation split.
        folder: Path of the trial's run folder.
        trials: Number of all trials, including failed trials.
        failed: Number of failed trials.
    """

    number: int
    layer: dict[str, Any]
    metric: str
    value: float
    folder: Any
    trials: int
    failed: int


def search_settings(
    layers: Iterable[dict[str, Any]],
    folder: Any,
    trials: Any = 20,
    methods: Sequence[str] | None = None,
    overwrite: bool = False,
    source: Any = None,
) -> "Best":
    """Searches for settings and returns the `Best` trial.

    Args:
        layers: Nested dicts of settings. Later ones override earlier ones.
        folder: Path of the search's folder. If `None`, it is
            `runs/<task>_tune_<seed>`.
        trials: Number of trials, including earlier ones in the folder.
            Default: 20.
        methods: See `trial_settings.make_space`.
        overwrite: Whether to remove an earlier search first. Default: `False`.
        source: `TableFiles`, or `None` (default). The temporary files of
            in-memory tables are moved to the folder.

    Raises:
        ConfigError: If Optuna is not installed, a setting is wrong, the folder
            is at an address such as `gs://bucket/search` or holds another
            search, or all trials failed.
    """
    import_optuna()
    if "://" in str(folder):
        raise ConfigError(
            "The folder of a search must be on this machine. Received: "
            f"{cut(folder)}"
        )
    space = trial_settings.make_space(layers, methods)
    configs = [_checked_config(space, method) for method in space.methods]
    config = _without_test(configs[0])
    data = task_data.load_task_data(config).select(_SPLITS)
    folder = folder or f"runs/{config.task}_tune_{config.seed}"
    with contextlib.closing(SearchFolder(folder, overwrite)) as opened:
        opened.check_same(config, space.methods, data.fingerprints)
        if source is not None:
            space = space.on_top(opened.keep_tables(source))
        first = [space.usual(method) for method in space.methods]
        journal = SearchJournal(opened.journal, config.seed, first)
        summary.print_labels(data.task, data.rows, config)
        try:
            return _Search(space, data, opened, journal).run(trials)
        except Stopped as error:
            if not overwrite:
                raise
            raise Stopped(
                "Stopped by SIGTERM. The same command without --overwrite "
                "continues this search."
            ) from error


def _checked_config(space: Any, method: Any) -> "Config":
    """Returns a method's `Config` with default values for searched settings.

    Raises an error if the settings are wrong or data are missing.
    """
    config = space.config({"method": {"name": method}})
    task_data.check_data_exists(config)
    config = resolve.build_method(config)
    table_settings.check_method(config)
    if config.distribution_strategy in config_settings.CLUSTERS:
        raise ConfigError(
            "A search trains on one machine, not with "
            f"--distribution_strategy={config.distribution_strategy}."
        )
    return config


def _without_test(config: "Config") -> "Config":
    """Returns `config` without its test file, which a search never reads."""
    data = dataclasses.replace(config.data, test_file=None)
    return dataclasses.replace(config, data=data)


class _Search:
    """Runs the trials of a search, one at a time.

    Args:
        space: `Space`.
        data: `TaskData`.
        folder: `SearchFolder`.
        journal: `SearchJournal`.
    """

    def __init__(
        self,
        space: Any,
        data: "TaskData",
        folder: Any,
        journal: Any,
    ) -> None:
        self.space = space
        self.data = data
        self.folder = folder
        self.journal = journal
        self.metric = data.task.metrics[0]

    def run(self, trials: Any) -> "Best":
        """Runs trials until `trials` have ended. Returns the best trial.

        Trials of earlier processes count too, and so do failed trials.
        """
        print(
            f"search: {trials} trials over {self.space.describe()}; the best "
            f"on validation by {self.metric}, in {self.folder.folder}",
            flush=True,
        )
        for number in self.journal.running:
            self._resume(number, trials)
        while self.journal.done + self.journal.failed < trials:
            trial = self.journal.ask()
            self._try(trial.number, self.space.suggest(trial), trials)
        return self._best()

    def _resume(self, number: Any, trials: Any) -> None:
        """Resumes a trial whose process ended, or records it as failed."""
        layer, starts = self.folder.read_trial(number)
        if layer is None:
            self._fail(number, "it was stopped before it began")
        elif starts >= _MOST_STARTS:
            self._fail(number, f"its process ended {_MOST_STARTS} times")
        else:
            self._try(number, layer, trials, starts)

    def _try(
        self, number: Any, layer: Any, trials: Any, starts: Any = 0
    ) -> None:
        """Trains one trial, then records and prints its result.

        `layer` is a nested dict of the trial's settings. `starts` is the number
        of times that the trial was started before.
        """
        folder = self.folder.write_trial(number, layer, starts + 1)
        words = trial_settings.words(layer)
        print(f"trial {number + 1} of {trials}: {words}", flush=True)
        began = time.perf_counter()
        try:
            value = self._train(layer, folder)
        except (Stopped, KeyboardInterrupt):
            # The trial was asked to stop, so this start does not count.
            self.folder.write_trial(number, layer, starts)
            raise
        # Any error fails only this trial, because the next one may succeed.
        except Exception as error:
            replace_text(folder / "error.txt", traceback.format_exc())
            self._fail(number, cut(error) or type(error).__name__)
        else:
            self.journal.tell(number, value)
            self._print_value(value, time.perf_counter() - began)
        finally:
            keras.backend.clear_session()
            gc.collect()

    def _print_value(self, value: Any, seconds: float) -> None:
        number, best = self.journal.best
        print(
            f"  {self.metric} {value:.4f} in {seconds:.0f} s; the best is "
            f"{best:.4f}, of trial {number + 1}",
            flush=True,
        )

    def _fail(self, number: int, reason: str) -> None:
        self.journal.fail(number)
        print(f"  trial {number + 1} failed: {reason}", flush=True)

    def _train(self, layer: Any, folder: Any) -> Any:
        """Trains a trial unless its run is finished.

        Returns the trial's metric on the validation split.
        """
        config = _without_test(resolve.build_method(self.space.config(layer)))
        fingerprints = self.data.fingerprints
        result = earlier_runs.finished_result(folder, config, fingerprints)
        if result is None:
            with (
                open(folder / "log.txt", "a", encoding="utf-8") as log,
                contextlib.redirect_stdout(log),
            ):
                result = whole_run.train_run(
                    # A copy of the data, because training empties it.
                    config,
                    self.data.select(_SPLITS),
                    folder,
                    test=False,
                )
        value = result["validation"][self.metric]
        if not math.isfinite(value):
            raise ConfigError(f"Its {self.metric} is {value}.")
        return value

    def _best(self) -> "Best":
        done, failed = self.journal.done, self.journal.failed
        if not done:
            raise ConfigError(
                f"All {failed} trials failed; their reasons are in error.txt "
                f"of each folder in {self.folder.folder / 'trials'}. To try "
                "again, give --overwrite, or more --trials."
            )
        number, value = self.journal.best
        best = Best(
            number=number + 1,
            layer=self.folder.read_trial(number)[0],
            metric=self.metric,
            value=value,
            folder=self.folder.of_trial(number),
            trials=done + failed,
            failed=failed,
        )
        values = dataclasses.asdict(best)
        self.folder.write_best({**values, "folder": str(best.folder)})
        return best
