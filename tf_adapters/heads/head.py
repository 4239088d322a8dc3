"""The contract of a head, and the registry of all heads."""

import dataclasses
import typing

from tf_adapters.common import dataclass_config
from tf_adapters.common.checks import check_choices
from tf_adapters.common.checks import check_known
from tf_adapters.common.errors import UserError
from tf_adapters.common.registry import Registry
from tf_adapters.tasks import output_kinds

# Name to class; `register` fills it.
HEADS = Registry("head", "@tf_adapters.heads.register")


@dataclasses.dataclass(frozen=True)
class Head:
    """What an encoder's outputs are made into.

    A head is a frozen dataclass that owns everything about a kind of output.
    What of it is data, its rows' fields, labels, metrics and files, stands in
    `tf_adapters.tasks.output_kinds`. `outputs` below has an array for each
    example, `source` is what `encode` gave.

    Examples:
        >>> heads.from_config(heads.to_config(head)) == head
        True
    """

    # What it reads of the encoder: "first_token", "pooled_output" or
    # "sequence_output".
    reads = "sequence_output"
    # Names of its classes, if it has any.
    labels = ()
    # How a SavedModel is called; a key of `tf_adapters.export.signatures`, or
    # `None` where it cannot be exported.
    signature = None
    # Settings that a finished run may be given anew: they make no weights, but
    # what is read for them or answered by them.
    at_inference: typing.ClassVar[tuple[str, ...]] = ()
    # Shape of the token features that its model takes, and from the name of
    # what it takes besides to the shape.
    feature_shape: typing.ClassVar[tuple[None, ...]] = (None, None)
    further_features: typing.ClassVar[dict[str, tuple[None, ...]]] = {}
    # What logits are divided by before they become probabilities, and whether
    # it can be fitted: `train.calibrate`.
    temperature = 1.0
    has_temperature: typing.ClassVar[bool] = False
    # Whether a bank can answer with it: a linear layer on one vector a text.
    is_linear: typing.ClassVar[bool] = False
    # Whether a Keras loss on its outputs must be told `from_logits=True`.
    gives_logits: typing.ClassVar[bool] = False

    def __new__(cls, *args, **settings):
        dataclass_config.check_fields(cls, settings)
        return super().__new__(cls)

    def __post_init__(self):
        dataclass_config.check_values(self)
        check_choices(self)

    @classmethod
    def for_task(cls, task, encoder=None, **settings):
        """Returns the head of a task.

        Args:
            task: `Task`.
            encoder: `Encoder`, for a head whose layer depends on it.
            **settings: Fields of the head, as `head.*` on the command line.
        """
        return cls(**settings)

    def for_rows(self, rows):
        """Returns the head with what it takes from the training rows."""
        return self

    def make_layer(self):
        """Returns the layer from the encoder's outputs to the head's."""
        raise NotImplementedError

    def attach(self, layer, encoder):
        """Lets a layer of `make_layer` use an `AdaptedEncoder`."""

    def encode(self, rows, fields, packer, labelled=True):
        """Returns rows as `Encoded` examples.

        Args:
            rows: List of dicts.
            fields: The task's text fields.
            packer: `TextPacker`.
            labelled: Whether rows have labels.
        """
        raise NotImplementedError

    def check_labels(self, labels, ignored_class=None):
        """Raises a `UserError` if it has no such labels, for Keras's `fit`.

        Args:
            labels: Array of numbers, as `fit` is given it.
            ignored_class: Class id that the loss passes over, or `None`.
        """

    def loss(self, targets, outputs):
        """Returns the sum of each example's terms, `(batch,)`."""
        raise NotImplementedError

    def compare(self, outputs, targets, source=None):
        """Returns what metrics are computed from, and a run stores.

        Returns:
            Dict of lists, or arrays, with an entry for each row: `target` and
            `predicted`. They hold numbers, texts, or lists of such. A head
            that knows how sure it is adds `probabilities`: those of all
            classes or choices, or that of the predicted tag or answer.
        """
        raise NotImplementedError

    @classmethod
    def score(cls, names, compared):
        """Returns a dict from the names of metrics to those of a whole set.

        Args:
            names: Iterable of names.
            compared: What `compare` returned, or read back from JSON.
        """
        raise NotImplementedError

    def evaluate(self, names, outputs, targets, source=None):
        """Returns a dict from the names of metrics to those of a whole set."""
        return self.score(names, self.compare(outputs, targets, source))

    def judge(self, names, outputs, targets, source=None):
        """Returns what `evaluate` does, and what a run stores of it.

        A head whose own `evaluate` goes another way than by `compare` and
        `score` has nothing stored: an empty dict.
        """
        if not self._is_scored():
            return self.evaluate(names, outputs, targets, source), {}
        compared = self.compare(outputs, targets, source)
        return self.score(names, compared), compared

    @classmethod
    def _is_scored(cls):
        """Whether no `evaluate` was written for this `compare`, or after it."""
        owners = [
            next(one for one in cls.__mro__ if name in vars(one))
            for name in ("compare", "evaluate")
        ]
        return issubclass(*owners)

    def decode(self, outputs, source=None):
        """Returns a dict for each row, for people and JSON."""
        raise NotImplementedError

    def answer(self, outputs):
        """Returns a dict of tensors, what an exported model answers.

        Integers named `<name>_id` are class ids; the export adds `<name>`, the
        class's name.

        Args:
            outputs: What the layer returns for a batch, float32.
        """
        raise NotImplementedError


def register(name, kind=None):
    """Returns a decorator that makes a `Head` known by a name.

    Args:
        name: What `head` in a task file says and adapter folders store.
        kind: `OutputKind`, for a kind of output that is not known yet.

    Raises:
        UserError: If the class is no `Head`, or the name is taken.
    """

    def decorate(cls):
        HEADS.add(name, cls, Head)
        if kind is not None:
            output_kinds.KINDS[name] = kind
        if name not in output_kinds.KINDS:
            raise UserError(
                f"The head `{name}` needs an `OutputKind`, which says what its "
                "rows and labels are: `@heads.register(name, OutputKind(...))`."
            )
        return cls

    return decorate


def for_task(task, encoder=None, **settings):
    """Returns the head of a task.

    Args:
        task: `Task`.
        encoder: `Encoder`, which masked language modelling needs.
        **settings: Fields of the head in place of its defaults.

    Raises:
        UserError: If the head has no such setting, or a value is wrong.
    """
    cls = HEADS[task.head]
    fields = {field.name for field in dataclasses.fields(cls)} - {"labels"}
    for key in settings:
        what = f"setting of the head `{task.head}`,"
        check_known(what, key, sorted(fields))
    return cls.for_task(task, encoder, **settings)


def name_of(head):
    """Returns the name that a head's class is registered by."""
    return HEADS.name_of(head)


def to_config(head):
    """Returns a head as a dict of plain values with its `name`."""
    return {"name": name_of(head), **dataclasses.asdict(head)}


def from_config(config):
    """Returns the head that `to_config` described.

    Raises:
        UserError: If the name or a parameter is not known, or has the wrong
            type.
    """
    options = dict(config)
    name = options.pop("name")
    check_known("head", name, HEADS)
    return dataclass_config.from_dict(HEADS[name], options, "head.")
