"""What a task is: a few facts as data, and no code."""

import dataclasses

from tf_adapters.common.checks import check_known
from tf_adapters.common.checks import did_you_mean
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown
from tf_adapters.tasks.languages import Languages
from tf_adapters.tasks.output_kinds import KINDS

TWO_SPLITS = {"train": "train", "validation": "validation"}
THREE_SPLITS = {**TWO_SPLITS, "test": "test"}


@dataclasses.dataclass(frozen=True)
class GlueLayout:
    """Where the files of the official GLUE download keep a task.

    Attributes:
        folder: Folder of the task, for example `"CoLA"`.
        columns: Column of each text field, in the order of `text_fields`.
        label_column: Column of the label; it may be missing in the test file.
        headerless_columns: Columns of train and dev where these files have no
            header line (CoLA); empty otherwise.
        skip_broken_lines: Whether lines with another number of columns than the
            header are dropped with a warning and not reported as problems.
    """

    folder: str
    columns: tuple[str, ...]
    label_column: str = "label"
    headerless_columns: tuple[str, ...] = ()
    skip_broken_lines: bool = False


@dataclasses.dataclass(frozen=True)
class Task:
    """What a run needs to know about a task, and nothing else.

    Attributes:
        name: Key of `--task`, folder of the task's local files, and name in
            result files.
        text_fields: Names of the fields that are read, in the order in which
            the head reads them: one or two texts for classification and
            regression; one or two texts and the list of choices for a choice;
            the list of words for tagging; the question and the text for a
            span.
        source: Name in TensorFlow Datasets, for example `"glue/mnli"`;
            `"builtin:..."` for generated texts; `""` (default) for local files
            only.
        labels: Class names in label-id order. Empty for classification where
            the names are those of the training file, and where the head has
            no classes.
        splits: From `train`, `validation`, and `test` where it is labelled, to
            the split's name in TensorFlow Datasets. Defaults to `TWO_SPLITS`.
        head: Kind of output, a key of `KINDS`. Defaults to classification.
        metrics: Metrics of that kind. The first selects the checkpoint. `None`
            (default): the kind's own.
        cite: Where the task, its metric and its splits are defined.
        label_field: Name of the label's field.
        aliases: From a field to its other name in local files.
        optional_fields: Text fields that may be null, which reads as "".
        label_range: Least and greatest label of a regression task, if fixed.
        unlabelled_splits: As `splits`, for splits whose labels are secret.
        glue: Where the official GLUE download keeps the task, if it does.
        files: From `train`, `validation`, `test` to a file, for a task of
            one's own; empty otherwise.
        choice_fields: Other fields that hold the choices: one with all of
            them, or one for each.
        blank: What stands in a choice's question for the answer, if anything.
        folder: Folder of the task's local files, if not called as the task.
        language: Code of the language that the task is in, if it has several.
        languages: All of them, or `None`.
        train_task: Task whose training split is this one's, or `None`.
        id_field: Name of the field that a row is known by outside, if any.
        file_stems: From a split to another name of its local file.
    """

    name: str
    text_fields: tuple[str, ...]
    source: str = ""
    labels: tuple[str, ...] = ()
    splits: dict[str, str] = dataclasses.field(default_factory=TWO_SPLITS.copy)
    head: str = "classification"
    metrics: tuple[str, ...] | None = None
    cite: str = ""
    label_field: str = "label"
    aliases: dict[str, str] = dataclasses.field(default_factory=dict)
    optional_fields: tuple[str, ...] = ()
    label_range: tuple[float, float] | None = None
    unlabelled_splits: dict[str, str] = dataclasses.field(default_factory=dict)
    glue: GlueLayout | None = None
    files: dict[str, str] = dataclasses.field(default_factory=dict)
    choice_fields: tuple[str, ...] = ()
    blank: str = ""
    folder: str = ""
    language: str = ""
    languages: Languages | None = None
    train_task: "Task | None" = None
    id_field: str = ""
    file_stems: dict[str, str] = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        self._check_head()
        if self.metrics is None:
            object.__setattr__(self, "metrics", self.kind.default_metrics)
        self._check_fields()
        self._check_labels()
        self._check_metrics()

    @property
    def all_splits(self):
        """Dict from split to its name in TensorFlow Datasets, all of them."""
        return {**self.splits, **self.unlabelled_splits}

    @property
    def kind(self):
        """The `OutputKind` of its head."""
        return KINDS[self.head]

    @property
    def list_field(self):
        """Name of the field that is a list of texts, or `None`."""
        return self.text_fields[-1] if self.kind.list_field else None

    def _check_fields(self):
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

    def _check_head(self):
        check_known(f"head of task `{self.name}`,", self.head, KINDS)

    def _check_labels(self):
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

    def _check_metrics(self):
        known = self.kind.metrics
        unknown = [name for name in self.metrics if name not in known]
        if unknown or not self.metrics:
            raise UserError(
                f"Task `{self.name}` needs one metric or more out of "
                f"{sorted(known)}, which suit {self.head}. Received: "
                f"metrics={cut(self.metrics)}."
                + "".join(did_you_mean(name, known) for name in unknown)
            )
        if "f1" in self.metrics and len(self.labels) != 2:
            raise UserError(
                f"Metric `f1` of task `{self.name}` is for two classes; use "
                "`macro_f1` or `micro_f1`. Received: "
                f"labels={cut(self.labels)}"
            )
