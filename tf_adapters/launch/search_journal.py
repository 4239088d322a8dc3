"""The trials of a search as Optuna keeps them, in a file that is resumed."""

from tf_adapters.common import own_files
from tf_adapters.common.extras import needs_extra


def import_optuna():
    """Returns Optuna, which only searches need.

    Raises:
        ConfigError: If it is not installed; names the extra.
    """
    with needs_extra("search", "A search for settings"):
        import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


class SearchJournal:
    """An Optuna study in a journal file, new or resumed.

    Args:
        path: Path of the file.
        seed: Integer that decides what is tried.
        first: List of dicts of parameters to try before anything else.
    """

    def __init__(self, path, seed, first):
        self._optuna = optuna = import_optuna()
        own_files.remove_link(path)
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

    def ask(self):
        """Returns a new Optuna trial."""
        return self._study.ask()

    def tell(self, number, value):
        """Notes the result of a trial."""
        self._study.tell(number, value)

    def fail(self, number):
        """Notes that a trial has no result."""
        state = self._optuna.trial.TrialState.FAIL
        self._study.tell(number, state=state)

    @property
    def running(self):
        """Numbers of the trials that were begun and not finished."""
        return [trial.number for trial in self._in_state("RUNNING")]

    @property
    def done(self):
        """How many trials have a result."""
        return len(self._in_state("COMPLETE"))

    @property
    def failed(self):
        """How many trials failed."""
        return len(self._in_state("FAIL"))

    @property
    def best(self):
        """Number and result of the best trial; of equal ones the first."""
        trial = self._study.best_trial
        return trial.number, trial.value

    def _in_state(self, name):
        states = [self._optuna.trial.TrialState[name]]
        return self._study.get_trials(deepcopy=False, states=states)
