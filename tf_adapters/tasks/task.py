"""The description of a task, as data without code."""

import dataclasses
from typing import Any

from tf_adapters.common.checks import check_known
from tf_adapters.common.checks import did_you_mean
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown
from tf_adapters.tasks.languages import Languages
from tf_adapters.tasks.output_kinds import KINDS
from tf_adapters.tasks.output_kinds import OutputKind

# Bytes of a task's name. Names of folders, which have 255 at most, contain it.
MAX_NAME = 100
TWO_SPLITS = {"train": "train", "validation": "validation"}
THREE_SPLITS = {**TWO_SPLITS, "test": "test"}


@dataclasses.dataclass(frozen=True)
class GlueLayout:
    """The location of a task in the official GLUE download.

    Attributes:
        folder: Folder of the task, such as `"CoLA"`.
        columns: Column of each text field, in the order of `text_fields`.
        label_column: Column of the label. The test file may lack it. Defaults
            to `"label"`.
        headerless_columns: Columns of the train and dev files if they have no
            header line (CoLA), otherwise empty (default).
        skip_broken_lines: Whether to skip lines whose number of columns differs
            from the header's, with a warning instead of an error. Defaults to
            `False`.
    """

    folder: str
    columns: tuple[str, ...]
    label_column: str = "label"
    headerless_columns: tuple[str, ...] = ()
    skip_broken_lines: bool = False


@dataclasses.dataclass(frozen=True)
class Task:
    """Describes a task: its data, its kind of output and its metrics.

    Attributes:
        name: Value of `--task`, name of the folder of the task's local files,
            and name of the task in result files.
        text_fields: Names of the fields to read, in the order in which the head
            reads them. Classification and regression read one or two texts,
            `choice` one or two texts and the list of choices, `tagging` the
            list of words, `span` the question and the text, and `masked_lm` one
            to three texts.
        source: Name in TensorFlow Datasets, such as `"glue/mnli"`, or
            `"builtin:..."` for generated texts. `""` (default) if the task has
            only local files.
        labels: Class names in the order of their ids. Empty (default) if the
            names are read from the training file, or if the head has no
            classes.
        splits: Dict from `train`, `validation` and, if it is labeled, `test` to
            the split's name in TensorFlow Datasets. Defaults to `TWO_SPLITS`.
        head: Kind of output, a key of `KINDS`. Defaults to `"classification"`.
        metrics: Names of metrics that the kind of output supports. The first
            one selects the checkpoint. `None` (default) uses the kind's default
            metrics.
        cite: Source of the definition of the task, its metric and its splits.
        label_field: Name of the label's field. Defaults to `"label"`.
        aliases: Dict from a field's name to its alternative name in local
            files.
        optional_fields: Text fields that may be null, which is read as `""`.
        label_range: Minimum and maximum label of a regression task, or `None`
            (default) if they are not fixed.
        unlabeled_splits: Like `splits`, for splits whose labels are not
            public.
        glue: Location of the task in the official GLUE download, or `None`
            (default).
        files: Dict from `train`, `validation` and `test` to a file, for a
            user's own task. Otherwise empty (default).
        choice_fields: Other fields from which the choices can be read: a single
            field with the list of choices, or one field for each choice.
        blank: Placeholder for the choice in a question, or `""` (default).
        folder: Folder of the task's local files. `""` (default) if it has the
            task's name.
        language: Code of the task's language, if the task has several
            languages.
        languages: `Languages` with all languages of the task, or `None`
            (default).
        train_task: Task whose training split this task uses, or `None`
            (default) for its own.
        id_field: Name of the field that identifies a row in other files, or
            `""` (default).
        file_stems: Dict from a split to an alternative name of its local file.
    """

    name: str
    text_fields: tuple[str, ...]
    source: str = ""
    labels: tuple[str, ...] = ()
    splits: dict[str, str] = dataclasses.field(default_factory=TWO_SPLITS.copy)
    head: str = "classification"
    # `None` is replaced by the kind's default when the task is created.
    metrics: tuple[str, ...] | Any = None
    cite: str = ""
    label_field: str = "label"
    aliases: dict[str, str] = dataclasses.field(default_factory=dict[str, str])
    optional_fields: tuple[str, ...] = ()
    label_range: tuple[float, float] | None = None
    unlabeled_splits: dict[str, str] = dataclasses.field(
        default_factory=dict[str, str]
    )
    glue: GlueLayout | None = None
    files: dict[str, str] = dataclasses.field(default_factory=dict[str, str])
    choice_fields: tuple[str, ...] = ()
    blank: str = ""
    folder: str = ""
    language: str = ""
    # `None` if the task has one language.
    languages: Languages | Any = None
    train_task: "Task | None" = None
    id_field: str = ""
    file_stems: dict[str, str] = dataclasses.field(
        default_factory=dict[str, str]
    )

    def __post_init__(self) -> None:
        size = len(self.name.encode(errors="surrogatepass"))
        if size > MAX_NAME:
            raise UserError(
                f"A task's name has at most {MAX_NAME} bytes, because folders "
                f"are named after it. Received: {size} bytes, "
                f"{shown(self.name)}"
            )
        self._check_head()
        if self.metrics is None:
            object.__setattr__(self, "metrics", self.kind.default_metrics)
        self._check_fields()
        self._check_labels()
        self._check_metrics()

    @property
    def all_splits(self) -> dict[str, str]:
        """Dict from each split to the split's name in TensorFlow Datasets.

        The dict includes the unlabeled splits.
        """
        return {**self.splits, **self.unlabeled_splits}

    @property
    def kind(self) -> OutputKind:
        """The `OutputKind` of the task's head."""
        return KINDS[self.head]

    @property
    def list_field(self) -> str | None:
        """The name of the field with a list (choices or words), or `None`."""
        return self.text_fields[-1] if self.kind.list_field else None

    def _check_fields(self) -> None:
        fields = self.text_fields
        kind = self.kind
        if len(fields) not in kind.num_fields or len(set(fields)) != len(
            fields
        ):
            raise UserError(
                f"Task `{self.name}` must have {kind.fields_in_words} with "
                f"different names. "
                f"Received: text_fields={cut(fields)}"
            )
        if "label" in fields:
            raise UserError(
                f"Task `{self.name}`: no text field can be called `label`, "
                "because rows keep their label under this name. Rename the "
                "column."
            )
        if self.label_field in fields:
            raise UserError(
                f"Task `{self.name}` cannot read its label from one of its "
                f"text fields. Received: label_field={shown(self.label_field)}"
            )
        missing = {"train", "validation"} - set(self.splits)
        if missing:
            raise UserError(
                f"Task `{self.name}` lacks the splits {sorted(missing)}. "
                f"Received: splits={cut(self.splits)}"
            )

    def _check_head(self) -> None:
        check_known(f"head of task `{self.name}`,", self.head, KINDS)

    def _check_labels(self) -> None:
        has_none = not self.kind.has_classes and self.kind.label != "none"
        if has_none and self.labels:
            raise UserError(
                f"Task `{self.name}` is a {self.head} and so has no classes. "
                f"Received: labels={cut(self.labels)}"
            )
        if len(self.labels) == 1 or len(set(self.labels)) != len(self.labels):
            raise UserError(
                f"Task `{self.name}` needs at least two classes, each named "
                f"once. Received: labels={cut(self.labels)}"
            )

    def _check_metrics(self) -> None:
        known = self.kind.metrics
        unknown = [name for name in self.metrics if name not in known]
        if unknown or not self.metrics:
            raise UserError(
                f"Task `{self.name}` needs one metric or more out of "
                f"{sorted(known)}, which suit {self.head}. Received: "
                f"metrics={cut(self.metrics)}."
                + "".join(did_you_mean(name, known) for name in unknown)
            )
        if self.metrics[0] == "loss":
            raise UserError(
                f"Task `{self.name}` selects weights by its first metric, of "
                "which more is better. Put `log_likelihood`, the negative of "
                "`loss`, first."
            )
        # The classes may be unknown until the data are read.
        if "f1" in self.metrics and self.labels and len(self.labels) != 2:
            raise UserError(
                f"Metric `f1` of task `{self.name}` is for two classes; use "
                "`macro_f1` or `micro_f1`. Received: "
                f"labels={cut(self.labels)}"
            )
