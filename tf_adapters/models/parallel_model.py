"""Models that run several adapters side by side."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any

from keras import ops

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.types import Tensor
from tf_adapters.models.features_model import FeaturesModel

if TYPE_CHECKING:
    from tf_adapters.models.adapter_model import AdapterModel
    from tf_adapters.models.composition import BatchSplit
    from tf_adapters.models.composition import Parallel


class ParallelModel(FeaturesModel):
    """Runs several adapters, each on the whole batch or on rows of its own.

    For batches that mix examples of many tasks in any order, see `load_bank`.

    Args:
        composition: `Parallel` or `BatchSplit`.
        models: List with an `AdapterModel` for each member.

    Call arguments:
        inputs: Dict as for `AdapterModel`.

    Returns:
        List of the members' outputs: each for the whole batch with `Parallel`,
        each for its own rows with `BatchSplit`.

    Examples:
        >>> one = tf_adapters.adapt(encoder, methods.Pfeiffer(), head)
        >>> two = tf_adapters.adapt(encoder, methods.LoRA(), head)
        >>> model = tf_adapters.compose(encoder, tf_adapters.Parallel(one, two))
        >>> isinstance(model, tf_adapters.ParallelModel), len(model.models)
        (True, 2)
    """

    def __init__(
        self, composition: Parallel | BatchSplit, models: Sequence[AdapterModel]
    ) -> None:
        super().__init__(autocast=False, dtype="float32", trainable=False)
        self.composition = composition
        self.models = models
        self._left_out: list[Any] = []
        self.built = True

    def predict(
        self, x: Any, batch_size: int | None = None, *args: Any, **options: Any
    ) -> Any:
        """Returns a list of the members' outputs; see `keras.Model.predict`.

        Args:
            x: Dict of arrays, `tf.data` set or generator.
            batch_size: Rows of a batch of arrays. Defaults to all rows with
                `BatchSplit`, which takes the sum of `batch_sizes` and no other
                number, and to 32 with `Parallel`.
            *args: See `keras.Model.predict`.
            **options: See `keras.Model.predict`.
        """
        sizes = getattr(self.composition, "batch_sizes", None)
        if batch_size is None and sizes is not None and isinstance(x, dict):
            self.check_features(x)
            batch_size = max(1, len(next(iter(x.values()))))
        return super().predict(x, batch_size, *args, **options)

    def make_predict_function(
        self, force: bool = False
    ) -> Callable[..., Any] | None:
        for model in self.models:
            model.check_encoder()
        left_out = [model.left_out for model in self.models]
        if left_out != self._left_out:
            self._left_out = left_out
            self._forget_graphs()
        return super().make_predict_function(force)

    def get_config(self) -> dict[str, Any]:
        raise UserError(
            "A parallel model has no file of its own. Save the adapters of its "
            "`models` with `tf_adapters.save_adapter`, and compose them again."
        )

    def export(self, *args: Any, **kwargs: Any) -> None:
        for model in self.models:
            model.check_encoder()
        super().export(*args, **kwargs)

    def check_features(self, inputs: Any) -> None:
        """Raises a `UserError` unless all members accept `inputs`."""
        for model in self.models:
            model.check_features(inputs)

    def feature_shapes(self) -> dict[str, tuple[None, ...]]:
        """Returns a dict from the name of an input to its shape."""
        return self.models[0].feature_shapes()

    def call(
        self, inputs: dict[str, Tensor], training: bool | None = None
    ) -> list[Any]:
        sizes = getattr(self.composition, "batch_sizes", None)
        if sizes is None:
            return [model(inputs) for model in self.models]
        rows = inputs["token_ids"].shape[0]
        if rows is not None and rows != sum(sizes):
            raise UserError(
                f"A BatchSplit of {cut(sizes)} rows takes {sum(sizes)}. "
                f"Received: {rows}"
            )
        if rows is None:
            # In a graph for any batch size, `reshape` fails if the number of
            # rows is wrong.
            ids = inputs["token_ids"]
            # Multiple-choice inputs have one more axis.
            further = len(ids.shape) - 1
            ones = ops.ones_like(ids[(slice(None), *[slice(1)] * further)])
            ones = ops.reshape(ones, (sum(sizes), *[1] * further))
            inputs = {**inputs, "token_ids": ids * ones}
        outputs, first = [], 0
        for model, size in zip(self.models, sizes, strict=True):
            rows = {k: v[first : first + size] for k, v in inputs.items()}
            outputs.append(model(rows))
            first += size
        return outputs
