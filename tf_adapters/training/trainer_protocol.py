"""The interface between the training loop and its trainers."""

from collections.abc import Collection
from collections.abc import Hashable
from collections.abc import Iterator
from typing import TYPE_CHECKING
from typing import Any
from typing import Protocol

from tf_adapters.common.types import Tensor

if TYPE_CHECKING:
    import keras

    from tf_adapters.config.settings import TrainConfig
    from tf_adapters.data.batches.batch_plan import Batch
    from tf_adapters.training.optimizers import AdamWOfSums


class TrainerProtocol(Protocol):
    """Interface of `Trainer` (one task) and `MultiTaskTrainer` (several).

    Attributes:
        model: An object with `last_phase_step(total_steps)` and
            `start_last_phase()`, such as `AdapterModel`.
        settings: `TrainConfig`.
        seed: Integer. Seed of the run.
        metric_names: Names of metrics that `judge` returns. The first one
            selects the weights to keep.
        variables: The trained `keras.Variable`s.
        names: The names of these variables.
        optimizer: `AdamWOfSums`, after `prepare_training` was called. If it has
            a `loss_scale`, steps with norms that are not finite are skipped.
        programs: Names and shapes of the programs that were compiled so far
            for fixed shapes of batches; empty if none are.
    """

    model: Any
    settings: "TrainConfig"
    seed: int
    metric_names: tuple[str, ...]
    variables: "list[keras.Variable]"
    names: list[str]
    optimizer: "AdamWOfSums | Any"

    @property
    def programs(self) -> Collection[Any]: ...

    def plan(self, examples: Any, epoch: int) -> "list[Batch]":
        """Returns the list of `Batch` of one epoch."""
        ...

    def kind(self, examples: Any, batch: "Batch") -> Hashable:
        """Returns a key of a batch, such as its shape.

        Batches with equal keys can be trained on in one device call.
        """
        ...

    def prepare_training(self, total_steps: int) -> None:
        """Creates the optimizer for `total_steps` steps."""
        ...

    def train_loops(
        self, examples: Any, loops: "list[list[Batch]]"
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Trains on lists of batches, each in one device call.

        Args:
            examples: The training data, as for `plan`.
            loops: List of lists of `Batch`. The batches of a list have the
                same `kind`.

        Yields:
            For each list, the losses `(steps,)` and the norms of the gradients
            `(steps, variables)`.
        """
        ...

    def judge(self, examples: Any) -> tuple[dict[str, float], dict[str, Any]]:
        """Evaluates the model; returns dicts of metrics and of predictions."""
        ...
