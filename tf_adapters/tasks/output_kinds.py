"""Descriptions of the kinds of output: their rows, labels and metrics.

A head defines how a kind of output is computed. All other code uses these
descriptions and does not refer to kinds by name. This module does not import
Keras or SciPy.
"""

import dataclasses
import typing

Label = typing.Literal[
    "class", "classes", "number", "choice", "class_a_word", "answers", "none"
]


@dataclasses.dataclass(frozen=True)
class OutputKind:
    """Describes a kind of output, such as classification.

    Attributes:
        metrics: Names of the metrics that can be computed for the kind.
        label: The type of a row's label. `"class"`: a class. `"classes"`: a
            list of any number of classes. `"number"`: a number. `"choice"`: the
            index of the right choice. `"class_a_word"`: a list with a class for
            each word. `"answers"`: a list of answers with their positions in
            the text. `"none"`: no label.
        num_fields: Tuple of the allowed numbers of text fields of a task.
        fields_in_words: Description of a task's text fields, for an error
            message.
        list_field: Type of the items if the last text field is a list:
            `"choices"` or `"words"`. `None` (default) if it is a text.
        default_metrics: Metrics of a task that does not specify any. Defaults
            to the first of `metrics`.
        label_field: Usual name of the label's field in files. Defaults to
            `"label"`.
        file_formats: Suffixes of the files that only this kind can read and
            write.
        is_pretraining: Whether adapters of this kind only prepare for tasks of
            other kinds. Defaults to `False`.
    """

    metrics: tuple[str, ...]
    label: Label
    num_fields: tuple[int, ...] = (1, 2)
    fields_in_words: str = "one or two text fields"
    list_field: typing.Literal["choices", "words"] | None = None
    default_metrics: tuple[str, ...] = ()
    label_field: str = "label"
    file_formats: tuple[str, ...] = ()
    is_pretraining: bool = False

    def __post_init__(self) -> None:
        if not self.default_metrics:
            object.__setattr__(self, "default_metrics", self.metrics[:1])

    @property
    def has_classes(self) -> bool:
        """Whether a row's label is a class or a list of classes."""
        return self.label in ("class", "classes", "class_a_word")


# Added to the error message for an unknown kind.
HINT = "To use your own, give the file that registers it: --plugin=<file>."
# Maps names to kinds; `heads.register` adds custom kinds.
KINDS = {
    "classification": OutputKind(
        ("accuracy", "f1", "micro_f1", "macro_f1", "matthews"), "class"
    ),
    "multilabel": OutputKind(("micro_f1", "macro_f1"), "classes"),
    "regression": OutputKind(
        ("pearson", "spearman"),
        "number",
        default_metrics=("spearman", "pearson"),
    ),
    "sentence_vector": OutputKind(
        ("spearman", "pearson"),
        "number",
        fields_in_words="two text fields, or one that is only encoded,",
        default_metrics=("spearman", "pearson"),
    ),
    "sentence_ranking": OutputKind(
        ("mrr", "recall_at_1", "recall_at_5", "recall_at_10"),
        "none",
        (1, 2, 3),
        "two text fields or three, or one that is only encoded,",
        default_metrics=("mrr", "recall_at_1", "recall_at_10"),
    ),
    "choice": OutputKind(
        ("accuracy",),
        "choice",
        (2, 3),
        "one or two text fields and, last, one for the choices,",
        "choices",
    ),
    "tagging": OutputKind(
        ("accuracy", "entity_f1", "entity_precision", "entity_recall"),
        "class_a_word",
        (1,),
        "one text field, for the words,",
        "words",
        label_field="tags",
        file_formats=(".conllu", ".conll"),
    ),
    "span": OutputKind(
        ("answer_f1", "exact_match"),
        "answers",
        (2,),
        "two text fields, for the question and the text,",
        default_metrics=("answer_f1", "exact_match"),
        label_field="answers",
        file_formats=(".json",),
    ),
    "masked_lm": OutputKind(
        ("log_likelihood", "masked_accuracy", "loss"),
        "none",
        (1, 2, 3),
        "one to three text fields",
        is_pretraining=True,
    ),
}
