"""Several tasks on one encoder: Pfeiffer et al. 2021, sections 2.1.2, 2.2.2."""

import dataclasses
import typing

from tf_adapters.common.errors import UserError
from tf_adapters.methods.method import Method
from tf_adapters.methods.method import register
from tf_adapters.methods.pfeiffer import Pfeiffer


@register("multitask")
@dataclasses.dataclass(frozen=True)
class MultiTask(Method):
    """An encoder that trains together with an adapter and a head a task.

    This describes the model of one of the tasks; the encoder's variables are
    the same in all (`MultiTaskModel`). With `adapter` a `HeadOnly` it is plain
    multi-task learning; with one task it fine-tunes encoder and adapter.

    Attributes:
        tasks: Names of the tasks that train together.
        adapter: The method of each task's own weights, one that leaves the
            encoder alone. Pfeiffer's, with a reduction factor of 16, by
            default (section 4.1, table 1).
        train_encoder: Whether the encoder trains too, as in the paper.
        sampling: How often a batch is of which task, see
            `tf_adapters.data.batches.task_mixture`.
    """

    tasks: tuple[str, ...] = ()
    adapter: typing.Any = Pfeiffer()
    train_encoder: bool = True
    sampling: typing.Literal["annealed", "proportional", "square_root"] = (
        "annealed"
    )

    def make_slots(self, shape):
        """Returns the adapter's slots.

        Raises:
            UserError: If the adapter is none of one task alone.
        """
        fields = {field.name for field in dataclasses.fields(self.adapter)}
        if fields & {"adapters", "tasks"}:
            raise UserError(
                f"{type(self.adapter).__name__} cannot be `method.adapter`: it "
                "stands on several adapters or tasks itself. Use pfeiffer, "
                "projected_attention or head_only."
            )
        return self.adapter.make_slots(shape)

    def make_embedding_slots(self, shape):
        """Returns the adapter's slots in the embeddings."""
        return self.adapter.make_embedding_slots(shape)

    @property
    def position_offset(self):
        """The adapter's."""
        return self.adapter.position_offset

    def trainable_encoder_variables(self, encoder):
        """Returns all of the encoder's variables, or nothing.

        Raises:
            UserError: If the adapter would train some of them for one task.
        """
        if self.adapter.last_phase_step(1):
            raise UserError(
                f"{type(self.adapter).__name__} trains in phases of its own, "
                "which several tasks cannot have together. Use pfeiffer, "
                "projected_attention or head_only as `method.adapter`."
            )
        own = self.adapter.trainable_encoder_variables(encoder)
        if own:
            raise UserError(
                "`method.adapter` must leave the encoder alone, which all "
                f"tasks share. Received: {type(self.adapter).__name__}, which "
                f"trains {len(own)} of its variables, `{own[0].path}` first. "
                "Freeze them by its own settings, or use pfeiffer, "
                "projected_attention or head_only."
            )
        return encoder.used_variables() if self.train_encoder else []

    def reparameterize(self, model):
        """Returns what the adapter does to stored weights, if anything."""
        return self.adapter.reparameterize(model)

    def folds(self, model):
        """Returns what of the adapter can be written into the encoder."""
        return self.adapter.folds(model)

    def penalty(self, model):
        """Returns the adapter's own term of the loss, or 0."""
        return self.adapter.penalty(model)
