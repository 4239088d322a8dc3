"""Multi-task training: Pfeiffer et al. 2021, sections 2.1.2 and 2.2.2."""

import dataclasses
import typing
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.common.types import Tensor
from tf_adapters.layers.slot import Slot
from tf_adapters.methods.method import EncoderShape
from tf_adapters.methods.method import Method
from tf_adapters.methods.pfeiffer import Pfeiffer
from tf_adapters.methods.registry import register

if TYPE_CHECKING:
    import keras


@register("multitask")
@dataclasses.dataclass(frozen=True)
class MultiTask(Method):
    """Trains a shared encoder, and an adapter and a head for each task.

    This method describes the model of one of the tasks; the models of all tasks
    share the encoder's variables (see `MultiTaskModel`). If `adapter` is
    `HeadOnly()`, this is plain multi-task learning. With a single task, it
    fine-tunes the encoder and the adapter.

    Attributes:
        tasks: Names of the tasks that train together.
        adapter: Method for each task's own weights. It must not train the
            encoder. Defaults to `Pfeiffer()` with a reduction factor of 16
            (section 4.1, table 1).
        train_encoder: Whether the encoder trains too, as in the paper.
        sampling: How often each task is sampled for a batch; see
            `tf_adapters.data.batches.task_mixture`.
    """

    tasks: tuple[str, ...] = ()
    adapter: typing.Any = Pfeiffer()
    train_encoder: bool = True
    sampling: typing.Literal["annealed", "proportional", "square_root"] = (
        "annealed"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.adapter, Method):
            raise UserError(
                "`adapter` must be a method, such as "
                "`tf_adapters.methods.Pfeiffer()`. Received: "
                f"{shown(self.adapter)}"
            )

    def make_slots(self, shape: EncoderShape) -> list[dict[str, Slot]]:
        """Returns the slots that the method `adapter` makes for the blocks.

        Raises:
            UserError: If `adapter` itself uses several adapters or tasks.
        """
        fields = {field.name for field in dataclasses.fields(self.adapter)}
        if fields & {"adapters", "tasks"}:
            raise UserError(
                f"{type(self.adapter).__name__} cannot be `method.adapter`: it "
                "needs several adapters or tasks itself. Use pfeiffer, "
                "projected_attention or head_only."
            )
        return self.adapter.make_slots(shape)

    def make_embedding_slots(self, shape: EncoderShape) -> dict[str, Slot]:
        """Returns the slots that `adapter` makes for the embeddings."""
        return self.adapter.make_embedding_slots(shape)

    @property
    def position_offset(self) -> int:
        """The number of positions by which `adapter` shifts the text."""
        return self.adapter.position_offset

    def trainable_encoder_variables(
        self, encoder: Any
    ) -> "list[keras.Variable]":
        """Returns the encoder's variables if `train_encoder`, else `[]`.

        Raises:
            UserError: If `adapter` has training phases or trains variables of
                the encoder.
        """
        if self.adapter.gating.last_phase_step(1):
            raise UserError(
                f"{type(self.adapter).__name__} trains in phases, which "
                "several tasks cannot share. Use pfeiffer, "
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

    def reparameterize(
        self, model: Any
    ) -> "list[tuple[keras.Variable, keras.layers.Layer]]":
        """Returns pairs of a variable and the layer that replaces it.

        The pairs are those of the method `adapter`.
        """
        return self.adapter.reparameterize(model)

    def folds(self, model: Any) -> "list[tuple[keras.Variable, Slot]]":
        """Returns pairs of a kernel and the slot that can be folded into it.

        The pairs are those of the method `adapter`.
        """
        return self.adapter.folds(model)

    def penalty(self, model: Any) -> Tensor:
        """Returns the scalar that `adapter` adds to the loss."""
        return self.adapter.penalty(model)

    def report(self, model: Any) -> dict[str, Any]:
        """Returns the named numbers with which `adapter` describes a model."""
        return self.adapter.report(model)
