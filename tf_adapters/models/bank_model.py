"""Many trained adapters on one encoder, selected per example of a batch.

`BankCore` computes the forward pass, `BankEntries` records which adapters the
bank holds, and `PartReader` converts an adapter to rows of variables.
`tf_adapters.layers.banks` describes how the weights are stored.
"""

from collections.abc import Sequence
import os
from typing import Any

import keras

from tf_adapters.common.errors import AdapterError
from tf_adapters.common.types import Tensor
from tf_adapters.encoders.encoder import Encoder
from tf_adapters.models import trained_members
from tf_adapters.models.adapted_encoder import AdaptedEncoder
from tf_adapters.models.adapter_model import AdapterModel
from tf_adapters.models.bank_storage import BankStorage
from tf_adapters.models.encoder_checks import check_inputs


class BankModel(BankStorage):
    """An encoder with the adapters and heads of many tasks, for inference.

    `load_bank` makes it. For each example, the outputs equal those of a single
    `AdapterModel` with the example's adapter.

    Adapters can be added, replaced and removed while several threads use the
    bank. Normally this only overwrites rows of the bank's variables, so
    existing graphs stay valid. If a kind of weights has no free row, or an
    adapter has a new kind of weights, the variables are replaced by larger
    ones. `predict` then builds a new graph; a `tf.function` of your own must be
    made again when `generation` changes.

    Args:
        encoder: The `Encoder` that all members were trained on.
        members: Tuple of `Member`.
        capacity: Maximum number of adapters. If the bank is full, a new adapter
            overwrites the least recently used one. Defaults to the number of
            members.
        **kwargs: See `keras.Model`.

    Call arguments:
        inputs: Dict as for `AdapterModel`, and `adapter_ids` `(batch,)`: the
            index of each example's adapter. The members have indices from 0, in
            order; `using` looks up indices by name.

    Returns:
        `(batch, outputs)` float32, at least as wide as the widest head. The
        columns that a narrower head does not have are -1e9. Rows with an id
        that is not an adapter's are NaN. If the head of some adapter reads all
        tokens, the result is a dict: `tokens` is `(batch, tokens, outputs)`,
        and `texts`, if there are other heads, is the tensor described above.

    Examples:
        >>> method = methods.Pfeiffer()
        >>> one = tf_adapters.adapt(encoder, method, head, name="one")
        >>> two = tf_adapters.adapt(encoder, methods.LoRA(), head, name="two")
        >>> bank = tf_adapters.load_bank([one], encoder, capacity=100)
        >>> bank.add(two)
        'two'
        >>> with bank.using(["two", "one"]) as used:
        ...     ids = used.adapter_ids
        ...     answers = used.split(bank({**features, "adapter_ids": ids}))
        >>> answers[0].shape  # Of text 0, by adapter `two`.
        (2,)
    """

    @property
    def encoder(self) -> AdaptedEncoder:
        """The `AdaptedEncoder` with the bank's slots."""
        return self.core.encoder

    def get_config(self) -> dict[str, Any]:
        raise AdapterError(
            "A bank has no file of its own: keep the folders of its adapters, "
            "and load it again with `tf_adapters.load_bank`. `tf-adapters "
            "export --adapters=...` writes a SavedModel of several runs."
        )

    def check_features(self, inputs: Any) -> None:
        """Raises a `UserError` if token features or adapter ids are missing."""
        check_inputs(self.encoder, inputs)
        if "adapter_ids" not in inputs:
            raise AdapterError(
                "The inputs lack `adapter_ids`: for each example, the index "
                f"of its adapter among the bank's {len(self.names)}. "
                "`bank.using(names)` looks them up."
            )
        _check_ids(inputs["adapter_ids"], inputs["token_ids"])

    def feature_shapes(self) -> dict[str, tuple[None, ...]]:
        """Returns a dict from the name of an input to its shape."""
        names = [tensor.name for tensor in self.encoder.embeddings.inputs]
        return dict.fromkeys(names, (None, None)) | {"adapter_ids": (None,)}

    def call(
        self, inputs: dict[str, Tensor], training: bool | None = None
    ) -> Tensor | dict[str, Tensor]:
        found = self.core(inputs)
        widths = self._widths  # Another thread may set it to `None`.
        if widths is not None:
            found = {name: x[..., : widths[name]] for name, x in found.items()}
        if "texts" in found:
            found = {**found, "texts": found["texts"][:, 0]}
        return found if "tokens" in found else found["texts"]


def _check_ids(ids: Any, tokens: Any) -> None:
    """Raises an `AdapterError` unless there is one integer per example."""
    is_integer = "int" in keras.backend.standardize_dtype(ids.dtype)
    sizes = {ids.shape[0] if len(ids.shape) == 1 else -1, tokens.shape[0]}
    if not is_integer or -1 in sizes or len(sizes - {None}) > 1:
        raise AdapterError(
            "`adapter_ids` must be integers of shape (batch,), one for each of "
            f"the texts in `token_ids` {tuple(tokens.shape)}. Received: "
            f"{keras.backend.standardize_dtype(ids.dtype)} of shape "
            f"{tuple(ids.shape)}"
        )


def load_bank(
    adapters: Sequence[str | os.PathLike[str] | AdapterModel],
    encoder: Encoder,
    capacity: int | None = None,
) -> BankModel:
    """Returns a `BankModel` of trained adapters, in the given order.

    Args:
        adapters: Paths of adapter folders or of runs that contain one, or
            models in memory, each an `AdapterModel`. Their methods and heads
            may differ.
        encoder: The `Encoder` of all adapters, freshly loaded.
        capacity: See `BankModel`.

    Raises:
        AdapterError: If an adapter is damaged, belongs to another encoder,
            trained the encoder's kernels, has no head, or has a method or a
            head that a bank cannot hold.

    Examples:
        >>> method = methods.Pfeiffer()
        >>> one = tf_adapters.adapt(encoder, method, head, name="one")
        >>> two = tf_adapters.adapt(encoder, methods.LoRA(), head, name="two")
        >>> bank = tf_adapters.load_bank([one, two], encoder)
        >>> outputs = bank({**features, "adapter_ids": np.array([0, 1])})
        >>> outputs.shape[0]  # Row 0 by adapter `one`, row 1 by `two`.
        2
    """
    members = trained_members.read_members(adapters, encoder)
    return BankModel(encoder, members, capacity)
