"""What a training run asks of a trainer, whatever it trains."""

from typing import Protocol


class TrainerProtocol(Protocol):
    """`Trainer` of one task and `MultiTaskTrainer` of several are ones.

    Attributes:
        model: Has `last_phase_step(total_steps)` and `start_last_phase()`, as
            `AdapterModel` has.
        config: `Config`.
        metric_names: Names of metrics; `judge` returns each, and the first one
            selects the weights that are kept.
        variables: The `keras.Variable`s that are trained.
        names: Their names.
        optimizer: `AdamWOfSums` once `prepare_training` was called. If it has a
            `loss_scale`, steps whose norms are not finite were skipped.
    """

    model: object
    config: object
    metric_names: tuple
    variables: list
    names: list
    optimizer: object

    def plan(self, examples, epoch):
        """Returns the list of `Batch` of one epoch."""

    def kind(self, examples, batch):
        """Returns what all batches of one call of the device must share."""

    def prepare_training(self, total_steps):
        """Makes the optimiser for so many steps."""

    def train_loops(self, examples, loops):
        """Trains; yields losses and gradient norms of each list of batches.

        Args:
            examples: What `plan` was made of.
            loops: List of lists of `Batch`, each of one kind. The device does
                the steps of a list in one call.

        Yields:
            Losses `(steps,)` and norms `(steps, variables)`.
        """

    def judge(self, examples):
        """Returns a dict of metrics, and the predictions behind them."""
