"""Converts a `tf.data.Dataset` of texts to a dataset of token features.

Elements are tokenized in the graph, one batch at a time. Memory holds only a
few batches, independent of the number of elements.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from typing import TYPE_CHECKING
from typing import Any

import keras
import tensorflow as tf

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.data.tokens.graph_packer import in_graph
from tf_adapters.data.tokens.packing import TextPacker
from tf_adapters.heads.sentence_vector import TextVectorHead
from tf_adapters.text import predicting
from tf_adapters.text import stream_labels
from tf_adapters.text import training
from tf_adapters.text.columns import LABEL
from tf_adapters.text.columns import no_column
from tf_adapters.text.columns import table_fields
from tf_adapters.text.columns import usual_fields

if TYPE_CHECKING:
    from tf_adapters.heads.head import Head
    from tf_adapters.text.packer_layer import PackerLayer


@dataclasses.dataclass(frozen=True)
class Stream:
    """A dataset of texts, and the function that reads its elements.

    Attributes:
        dataset: `tf.data.Dataset` of batches.
        fields: Names of the text fields.
        read: Function that takes an element of the dataset. It returns three
            values: a list with the string tensor of each field; the labels or
            `None`; and the weights or `None`.
    """

    dataset: tf.data.Dataset
    fields: tuple[str, ...]
    read: Callable[..., Any]

    def features(
        self,
        head: "Head",
        packer: TextPacker,
        labeled: bool,
        class_weight: Mapping[Any, float] | None = None,
        across_batches: bool = False,
    ) -> tf.data.Dataset:
        """Returns a dataset of token features, one element per batch.

        Its elements are `(features, targets, weights)` or, if `labeled` is
        false, `(features,)`.

        Args:
            head: `Head`.
            packer: Packer that works in a graph.
            labeled: Whether to return targets and weights.
            class_weight: See `fit`.
            across_batches: See `stream_labels.targets_function`.
        """
        if labeled and isinstance(head, TextVectorHead):
            head.check_labeled_fields(self.fields)
        # Other backends compile a program for each length, so use one length.
        fixed = keras.backend.backend() != "tensorflow"
        length = packer.max_length if fixed else None
        make: Any = None
        if labeled:
            make = stream_labels.targets_function(head, across_batches)
        by_id = None
        if class_weight is not None:
            by_id = training.weights_by_id(head, class_weight)

        def pack(*element: Any) -> tuple[Any, ...]:
            texts, labels, weights = self.read(*element)
            features = _packed(head, packer, texts, length)
            if not labeled:
                return (features,)
            targets = make(texts, labels)
            if weights is None:
                weights = tf.ones(tf.shape(texts[0])[0])
            weights = stream_labels.checked_weights(weights)
            if by_id:
                factors = [by_id.get(i, 1.0) for i in range(len(head.labels))]
                weights *= tf.gather(tf.constant(factors, "float32"), targets)
            return features, targets, weights

        pack = tf.autograph.experimental.do_not_convert(pack)
        return self.dataset.map(pack, tf.data.AUTOTUNE).prefetch(2)


def open_dataset(
    dataset: tf.data.Dataset,
    head: "Head",
    batch_size: int,
    text: str | Sequence[str] | None = None,
    label: str | None = None,
    known: Sequence[str] | None = None,
) -> Stream:
    """Checks the elements of a dataset of texts, and returns its `Stream`.

    Args:
        dataset: `tf.data.Dataset`, batched or not, of texts, of `(texts,
            labels)` or `(texts, labels, weights)`, or of dicts of columns. A
            pair is a tuple of two texts. For a head without labels, an
            element is a text, a pair or a triple.
        head: `Head`.
        batch_size: Number of texts per batch if the dataset is not batched.
        text: See `TextModel.fit`.
        label: See `TextModel.fit`.
        known: See `rows.rows_of`.

    Raises:
        UserError: If the elements have another form, or the head has neither
            one output per text nor vectors of texts.
    """
    if not predicting.is_of_texts(head) and not head.makes_vectors:
        raise UserError(
            "A `tf.data.Dataset` of texts suits heads with one loss per text: "
            "classes, several labels, numbers, without windows; and vectors of "
            f"texts. Received: {shown(head)}. Pass a list or a table."
        )
    spec = dataset.element_spec
    element = spec if isinstance(spec, tuple) else (spec,)
    _check_names(element, text, label)
    if isinstance(element[0], dict):
        fields, read = _reading_columns(
            element[0], table_fields(list(element[0]), head, text, known), label
        )
    else:
        read = _read_tuple if stream_labels.has_labels(head) else _read_texts
        fields = usual_fields(head, len(read(*element)[0]))
    texts, *_ = read(*element)
    if _rank(texts, fields, spec) == 0:
        dataset = dataset.batch(batch_size)
    return Stream(dataset, fields, read)


def _check_names(
    element: tuple[Any, ...], text: str | Sequence[str] | None, label: Any
) -> None:
    """Raises a `UserError` if columns are named that nothing is read from."""
    has_columns = isinstance(element[0], dict)
    if label is not None and (len(element) > 1 or not has_columns):
        raise UserError(
            "Elements of the dataset are `(texts, labels)`, so leave `label` "
            "out; or make elements of one dict of columns. Received: "
            f"label={shown(label)}"
        )
    if text is not None and not has_columns:
        raise UserError(
            "The dataset has no columns, so leave `text` out; or make elements "
            f"of dicts of columns. Received: text={shown(text)}"
        )


def check_ends(dataset: tf.data.Dataset) -> None:
    """Raises a `UserError` if a dataset repeats without end."""
    if dataset.cardinality() == tf.data.INFINITE_CARDINALITY:
        raise UserError(
            "The dataset never ends, since it is repeated. Pass "
            "`dataset.take(n)`. `fit` also accepts `steps_per_epoch=n`."
        )


def graph_packer_of(preprocessor: "PackerLayer") -> TextPacker:
    """Returns the packer of a `PackerLayer`, in a form that works in a graph.

    Raises:
        UserError: If the tokenizer only runs in Python.
    """
    packer = preprocessor.packer
    packer = in_graph(packer) if isinstance(packer, TextPacker) else None
    if packer is None:
        raise UserError(
            "The encoder's tokenizer runs in Python only, so texts of a "
            "`tf.data.Dataset` cannot be packed. Pass a list or a table."
        )
    return packer


def _reading_columns(
    spec: dict[str, Any],
    fields: tuple[str, ...],
    label: str | None,
) -> tuple[tuple[str, ...], Callable[..., Any]]:
    if label is not None and label not in spec:
        raise no_column("label", label, list(spec))

    def read(
        columns: dict[str, Any], labels: Any = None, weights: Any = None
    ) -> tuple[list[Any], Any, Any]:
        texts = [columns[field] for field in fields]
        if labels is None:
            labels = columns.get(label or LABEL)
        return texts, labels, weights

    return fields, read


def _read_tuple(
    texts: Any, labels: Any = None, weights: Any = None
) -> tuple[list[Any], Any, Any]:
    texts = list(texts) if isinstance(texts, tuple) else [texts]
    return texts, labels, weights


def _read_texts(*texts: Any) -> tuple[list[Any], None, None]:
    """Reads an element of a dataset for a head that trains without labels."""
    return list(texts), None, None


def _packed(
    head: "Head", packer: TextPacker, texts: list[Any], length: int | None
) -> dict[str, Any]:
    """Packs a batch of texts or pairs into a dict of features.

    `length` is the number of tokens to pad to, or `None`. If the head makes
    vectors, each text of a row is a sequence of its own, and features have the
    shape `(batch, texts, tokens)`.
    """
    if not head.makes_vectors:
        return packer(*texts, sequence_length=length)
    each = tf.reshape(tf.stack(texts, axis=1), [-1])
    features = packer(each, sequence_length=length)
    return {
        name: tf.reshape(value, (-1, len(texts), tf.shape(value)[-1]))
        for name, value in features.items()
    }


def _rank(texts: list[Any], fields: tuple[str, ...], spec: Any) -> int:
    """Returns the rank of the texts in an element: 0, or 1 if batched.

    `spec` is the dataset's `element_spec`, for the error message.
    """
    ranks: set[Any] = {
        text.shape.rank
        if isinstance(text, tf.TensorSpec) and text.dtype == tf.string
        else None
        for text in texts
    }
    is_right = len(ranks) == 1 and ranks <= {0, 1}
    if not is_right or len(texts) != len(fields):
        raise UserError(
            "Expected a dataset of strings, batched or not: `texts`, `(texts, "
            "labels)`, `((first_texts, second_texts), labels)`, or dicts of "
            "columns; for a head without labels `(first_texts, second_texts)`. "
            f"Received elements of {shown(spec)}"
        )
    return ranks.pop()
