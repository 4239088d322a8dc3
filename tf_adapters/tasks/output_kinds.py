"""Kinds of output as data: what their rows, labels and metrics look like.

A head says how a kind is computed; the rest of the program reads of a kind what
stands here, and never asks for its name. Needs no Keras and no SciPy.
"""

import dataclasses
import typing

Label = typing.Literal[
    "class", "classes", "number", "choice", "class_a_word", "answers", "none"
]


@dataclasses.dataclass(frozen=True)
class OutputKind:
    """What belongs to a kind of output.

    Attributes:
        metrics: Names of the metrics that suit it.
        label: What a row's label is: a `"class"`; `"classes"`, a list of any
            number of them; a `"number"`; the place of the right `"choice"`; a
            `"class_a_word"`; `"answers"` with their places in the text; or
            `"none"`.
        num_fields: How many text fields a task may have.
        fields_in_words: The same for an error.
        list_field: What the last text field is a list of, `"choices"` or
            `"words"`, or `None` where it is a text.
        default_metrics: Those of a task file that names none; by default the
            first one.
        label_field: The usual name of the label's field in files.
        file_formats: Endings of files that only this kind can be read from and
            written to.
    """

    metrics: tuple[str, ...]
    label: Label
    num_fields: tuple[int, ...] = (1, 2)
    fields_in_words: str = "one text field or two"
    list_field: typing.Literal["choices", "words"] | None = None
    default_metrics: tuple[str, ...] = ()
    label_field: str = "label"
    file_formats: tuple[str, ...] = ()

    def __post_init__(self):
        if not self.default_metrics:
            object.__setattr__(self, "default_metrics", self.metrics[:1])

    @property
    def has_classes(self):
        """Whether its labels have names."""
        return self.label in ("class", "classes", "class_a_word")


# What an unknown kind may still be.
HINT = "One of your own needs the file that registers it: --plugin=<file>."
# Name to kind; `heads.register` adds those of a user's own.
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
    "choice": OutputKind(
        ("accuracy",),
        "choice",
        (2, 3),
        "one text field or two, and last that of the choices,",
        "choices",
    ),
    "tagging": OutputKind(
        ("accuracy", "entity_f1", "entity_precision", "entity_recall"),
        "class_a_word",
        (1,),
        "one text field, that of the words,",
        "words",
        label_field="tags",
        file_formats=(".conllu", ".conll"),
    ),
    "span": OutputKind(
        ("answer_f1", "exact_match"),
        "answers",
        (2,),
        "two text fields, that of the question and of the text,",
        default_metrics=("answer_f1", "exact_match"),
        label_field="answers",
        file_formats=(".json",),
    ),
    "masked_lm": OutputKind(
        ("log_likelihood", "masked_accuracy", "loss"),
        "none",
        (1, 2, 3),
        "one to three text fields",
    ),
}
