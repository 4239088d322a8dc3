"""Stores the trials of a search in a file, so that Optuna can resume it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common import own_files
from tf_adapters.common.extras import needs_extra

if TYPE_CHECKING:
    from pathlib import Path


def import_optuna() -> Any:
    """Imports Optuna, which only searches need, and returns the module.

    Raises:
        ConfigError: If Optuna is not installed. Names the extra to install.
    """
    with needs_extra("search", "A search for settings"):
        import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


class SearchJournal:
    """An Optuna study whose trials are stored in a journal file.

    If the file exists, the study in it is resumed.

    Args:
        path: Path of the journal file.
        seed: Integer that seeds Optuna's sampler.
        first: List of dicts, each from a parameter's name to its value. A new
            study begins with a trial for each dict.
    """

    def __init__(
        self, path: Path, seed: int, first: list[dict[str, Any]]
    ) -> None:
        self._optuna = optuna = import_optuna()
        own_files.remove_link(path)
        # Left by a process that was killed. The folder's lock is ours.
        own_files.remove_link(path.with_name(f"{path.name}.lock"))
        backend = optuna.storages.journal.JournalFileBackend(str(path))
        self._study = optuna.create_study(
            storage=optuna.storages.JournalStorage(backend),
            study_name="tune",
            direction="maximize",
            load_if_exists=True,
        )
        trials = self._study.get_trials(deepcopy=False)
        # A resumed search must not draw the same settings again.
        sampler = optuna.samplers.TPESampler(seed=seed + len(trials))
        self._study.sampler = sampler
        for parameters in [] if trials else first:
            self._study.enqueue_trial(parameters)

    def ask(self) -> Any:
        """Starts a new trial and returns it as an Optuna `Trial`."""
        return self._study.ask()

    def tell(self, number: int, value: Any) -> None:
        """Records a trial's result: `value` is the metric to maximize."""
        self._study.tell(number, value)

    def fail(self, number: int) -> None:
        """Records that a trial failed."""
        state = self._optuna.trial.TrialState.FAIL
        self._study.tell(number, state=state)

    @property
    def running(self) -> list[Any]:
        """List of the numbers of trials that were started but not finished."""
        return [trial.number for trial in self._in_state("RUNNING")]

    @property
    def done(self) -> int:
        """Number of trials with a result."""
        return len(self._in_state("COMPLETE"))

    @property
    def failed(self) -> int:
        """Number of failed trials."""
        return len(self._in_state("FAIL"))

    @property
    def best(self) -> tuple[Any, Any]:
        """Number and result of the best trial; in a tie, of the first one."""
        trial = self._study.best_trial
        return trial.number, trial.value

    def _in_state(self, name: str) -> Any:
        states = [self._optuna.trial.TrialState[name]]
        return self._study.get_trials(deepcopy=False, states=states)
