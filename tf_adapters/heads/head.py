"""The base class of all heads."""

from collections.abc import Iterable
from collections.abc import Sequence
import dataclasses
import typing
from typing import TYPE_CHECKING
from typing import Any

import keras
import numpy as np

from tf_adapters.common import dataclass_config
from tf_adapters.common.checks import check_choices
from tf_adapters.common.errors import UserError
from tf_adapters.common.types import Tensor
from tf_adapters.data.examples import Examples
from tf_adapters.heads.explained import Explained
from tf_adapters.heads.explained import cannot_explain
from tf_adapters.tasks.task import Task

if TYPE_CHECKING:
    from tf_adapters.encoders.encoder import Encoder
    from tf_adapters.layers.banks.bank_layer import Part


_DROPOUT = ("dropout_rate", "hidden_dropout_rate")


@dataclasses.dataclass(frozen=True)
class Head:
    """Defines a kind of output: its examples, layer, loss and metrics.

    A head is a frozen dataclass with the settings of the output.
    `tf_adapters.tasks.output_kinds` describes the rows, labels, metrics and
    files of each kind. In the methods below, `outputs` has one array for each
    example, and `source` is `Examples.source` of the examples that `encode`
    returned.

    Examples:
        >>> heads.from_config(heads.to_config(head)) == head
        True
    """

    # The encoder's output that the head reads: "first_token", "pooled_output"
    # or "sequence_output".
    reads = "sequence_output"
    # Names of the classes, if the head has classes.
    labels = ()
    # The signature of an exported model, a key of
    # `tf_adapters.export.signatures`. `None` if the head cannot be exported.
    signature: typing.ClassVar[str | None] = None
    # Settings that can be changed for a finished run. They affect how inputs
    # are read or outputs are interpreted, but not the weights.
    at_inference: typing.ClassVar[tuple[str, ...]] = ()
    # Shape of the token features of the head's model, and a dict from the name
    # of each additional feature to its shape.
    feature_shape: typing.ClassVar[tuple[None, ...]] = (None, None)
    further_features: typing.ClassVar[dict[str, tuple[None, ...]]] = {}
    # Whether the head's layer reads the encoder's token embeddings, as
    # `outputs["token_embeddings"]`. They are there only for such heads.
    reads_token_embeddings: typing.ClassVar[bool] = False
    # The number by which logits are divided before the softmax, and whether
    # `train.calibrate` can fit it.
    temperature = 1.0
    has_temperature: typing.ClassVar[bool] = False
    # Whether the head is a linear layer on one vector for each text. The ONNX
    # file of an encoder takes only the weights of such heads.
    is_linear: typing.ClassVar[bool] = False
    # Whether a Keras loss on the outputs needs `from_logits=True`.
    gives_logits: typing.ClassVar[bool] = False
    # Whether the head outputs a vector for each text of a row, which
    # `TextModel.encode` then returns.
    makes_vectors: typing.ClassVar[bool] = False

    def __new__(cls, *args: Any, **settings: Any) -> typing.Self:
        dataclass_config.check_fields(cls, settings)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        dataclass_config.check_values(self)
        check_choices(self)
        for name in (field.name for field in dataclasses.fields(self)):
            rate = getattr(self, name)
            if name in _DROPOUT and not 0 <= rate < 1:
                raise UserError(
                    f"`{name}` is the share of elements that are dropped, at "
                    f"least 0 and below 1. Received: {name}={rate}"
                )

    @property
    def is_of_tokens(self) -> bool:
        """Whether a row's outputs have an axis with an entry for each token."""
        return self.reads == "sequence_output"

    @classmethod
    def for_task(
        cls, task: Task, encoder: "Encoder | None" = None, **settings: Any
    ) -> typing.Self:
        """Creates the head for a task.

        Args:
            task: `Task`.
            encoder: `Encoder`. Only needed if the head's layer depends on it.
            **settings: Fields of the head, like `head.*` on the command line.
        """
        return cls(**settings)

    def for_rows(self, rows: list[dict[str, Any]]) -> typing.Self:
        """Returns a copy of the head, with settings computed from rows.

        Args:
            rows: List of dicts, the training rows.
        """
        return self

    def make_layer(self) -> keras.layers.Layer:
        """Creates the Keras layer that maps encoder outputs to head outputs.

        The layer is called as `layer(outputs, seeds)`. `outputs` is a dict with
        the model's inputs and the outputs of `AdaptedEncoder`. `seeds` is
        `StatelessSeeds` in training, else `None`.
        """
        raise NotImplementedError

    def bank_parts(self, layer: keras.layers.Layer) -> "list[Part]":
        """Returns the weights of `layer` in the form that a bank stores.

        A bank is a model with many adapters; see `tf_adapters.layers.banks`.
        If a subclass does not override this method, a bank cannot hold the
        subclass's heads.

        Args:
            layer: A layer from `make_layer`.

        Raises:
            UserError: If a bank cannot hold the head. The message says why.
        """
        raise UserError(
            "A bank answers only with classes, several labels, numbers, tags "
            "and spans."
        )

    def attach(self, layer: keras.layers.Layer, encoder: Any) -> None:
        """Connects a layer from `make_layer` to an `AdaptedEncoder`."""

    def encode(
        self,
        rows: list[dict[str, Any]],
        fields: Sequence[str],
        packer: Any,
        labeled: bool = True,
    ) -> Examples:
        """Converts rows to `Examples`.

        Args:
            rows: List of dicts.
            fields: Names of the task's text fields.
            packer: `TextPacker`.
            labeled: Whether rows have labels.
        """
        raise NotImplementedError

    def check_labels(
        self, labels: Any, ignored_class: int | None = None
    ) -> None:
        """Checks the labels that are passed to Keras's `fit`.

        Args:
            labels: Array of numbers.
            ignored_class: Class id that the loss ignores, or `None` (default).

        Raises:
            UserError: If a label is not valid for the head.
        """

    def loss(self, targets: Tensor, outputs: Tensor) -> Tensor:
        """Returns the loss of each example, `(batch,)`.

        If the loss of an example has several terms, such as one for each word,
        it is their sum.

        Args:
            targets: `(batch, ...)`, as in `Examples.targets`.
            outputs: `(batch, ...)`, outputs of the head's layer.
        """
        raise NotImplementedError

    def compare(
        self, outputs: Tensor, targets: Tensor, source: Any = None
    ) -> dict[str, Any]:
        """Returns targets and predictions, from which `score` computes metrics.

        Returns:
            Dict with `target` and `predicted`: lists or arrays with one entry
            for each row. An entry is a number, a string, or a list of them.
            Some heads add `probabilities`: of all classes or choices, or only
            of the predicted tags or answer.
        """
        raise NotImplementedError

    @classmethod
    def score(
        cls, names: Iterable[str], compared: dict[str, Any]
    ) -> dict[str, float]:
        """Computes metrics over a whole set.

        Args:
            names: Iterable of names of metrics.
            compared: Dict that `compare` returned, possibly read from JSON.

        Returns:
            Dict from each name to a number.
        """
        raise NotImplementedError

    def evaluate(
        self,
        names: Iterable[str],
        outputs: Tensor,
        targets: Tensor,
        source: Any = None,
    ) -> dict[str, float]:
        """Computes metrics over a whole set from the head's outputs.

        Returns:
            Dict from each name to a number.
        """
        return self.score(names, self.compare(outputs, targets, source))

    def judge(
        self,
        names: Iterable[str],
        outputs: Tensor,
        targets: Tensor,
        source: Any = None,
    ) -> tuple[dict[str, float], dict[str, Any]]:
        """Returns a dict of metrics, and the dict that `compare` returned.

        A run stores the second dict. It is empty if the head's own `evaluate`
        does not call `compare` and `score`.
        """
        if not self._is_scored():
            return self.evaluate(names, outputs, targets, source), {}
        compared = self.compare(outputs, targets, source)
        return self.score(names, compared), compared

    @classmethod
    def _is_scored(cls) -> bool:
        """Returns whether `evaluate` calls `compare` and `score`.

        This is assumed if the class that defines `compare` is the class that
        defines `evaluate`, or a subclass of it.
        """
        owners = [
            next(one for one in cls.__mro__ if name in vars(one))
            for name in ("compare", "evaluate")
        ]
        return issubclass(*owners)

    def decode(self, outputs: Tensor, source: Any = None) -> list[Any]:
        """Returns a list with the predictions of each row, ready for JSON.

        Each entry is a dict.
        """
        raise NotImplementedError

    def answer(self, outputs: Tensor) -> dict[str, Tensor]:
        """Returns the outputs of an exported model, a dict of tensors.

        Integers named `<name>_id` are class ids; the export adds the names of
        the classes as `<name>`.

        Args:
            outputs: Float32 outputs of the layer for a batch.
        """
        raise NotImplementedError

    def explained(
        self, output: np.ndarray, source: Any, label: str | None = None
    ) -> list[Explained]:
        """Returns the answers in one input's output that can be explained.

        Args:
            output: The layer's output for one input, without the batch axis.
            source: `Examples.source` of an encoding of this input alone.
            label: Name of the class to explain, or `None` (default) for the
                answer.

        Raises:
            UserError: If answers of this head cannot be explained.
        """
        raise cannot_explain(self)
