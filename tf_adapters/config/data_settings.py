"""The settings of a run's data."""

import dataclasses
import typing
from typing import Any


@dataclasses.dataclass(frozen=True)
class DataConfig:
    """The data to read, and how it is batched.

    Attributes:
        data_dir: Folder with `<task>/{train,dev,test}.{jsonl,csv,tsv}`, GLUE's
            own layout, or data sets prepared by TensorFlow Datasets. `None`
            uses TensorFlow Datasets' default folder.
        task_file: YAML file that defines a task of your own, or `None`.
        file: Table of texts and labels to train on, `.csv`, `.tsv` or `.jsonl`.
            It replaces a named task and a task file.
        text: Column of the table with the texts, or two or three columns.
        label: Column of the table with the labels.
        head: `"classification"` if the labels are classes, `"regression"` if
            they are numbers. The classes are the distinct labels in
            `file`. `"sentence_vector"` trains sentence vectors on pairs of
            texts labeled with a number, and `"sentence_ranking"` trains them on
            pairs or triples of texts without labels.
        validation_file: Table to validate on. `None` holds out a tenth of each
            class in `file`, drawn with the seed.
        test_file: Table to test on. `None` for no test.
        max_length: Largest number of tokens in a text, including special
            tokens.
        doc_stride: Largest number of tokens between the starts of two
            consecutive windows in question answering. A text that is too long
            is split into such windows, which overlap.
        windows: Largest number of windows of a text that is longer than
            `max_length`. Windows overlap, and the text's output is the mean or
            the maximum over them, in training too. 1 truncates the text. Only
            for tasks that predict a class, several labels or a number for a
            single text.
        window_stride: Number of tokens between the starts of two consecutive
            windows (see `windows`), at most `max_length` - 2. `None` for three
            quarters of this maximum.
        pooling: `"mean"` or `"max"`: how the logits or numbers that are
            predicted for the windows of a text are combined.
        max_train_examples: Number of training examples to draw with the seed,
            or `None` for all.
        train_examples_of: Dict from task to a number that replaces
            `max_train_examples`, or `None`. For runs with several tasks, such
            as a fusion's members or method `multitask`.
        train_fraction: Fraction of the training examples to draw with the
            seed, at least one example, or `None` for all (He et al. 2021,
            table 4: 0.05, 0.1, 0.2).
        max_validation_examples: Number of validation examples to draw, the
            same for all seeds, or `None` for all.
        max_test_examples: Number of test examples to draw, the same for all
            seeds, or `None` for all. It applies to each of `eval_languages`,
            and not to the test set of `low_resource`.
        low_resource: `k` of He et al. 2021, section 3.2, or `None`. Draws `k`
            training and 1,000 validation examples from the training split, and
            tests on the original validation split. Of the 1,000,
            `max_validation_examples` are kept.
        batching: `"grouped"` for batches of similar length, with little
            padding; `"random"`; or `"fixed"` for TPUs. Fixed batches always
            have `batch_size` rows, padded if needed, and `max_length` tokens
            or one of `length_buckets`.
        length_buckets: Shorter lengths for fixed batches. A text goes into a
            batch of the smallest length that fits.
        eval_languages: Languages in which to evaluate a multilingual task, or
            `all` for those in the data; see `tasks.languages`.
    """

    data_dir: str | None = None
    task_file: str | None = None
    file: str | None = None
    text: tuple[str, ...] = ("text",)
    label: str = "label"
    head: typing.Literal[
        "classification", "regression", "sentence_vector", "sentence_ranking"
    ] = "classification"
    validation_file: str | None = None
    test_file: str | None = None
    max_length: int = 128
    doc_stride: int = 128
    windows: int = 1
    window_stride: int | None = None
    pooling: typing.Literal["mean", "max"] = "mean"
    max_train_examples: int | None = None
    train_examples_of: typing.Any = None
    train_fraction: float | None = None
    max_validation_examples: int | None = None
    max_test_examples: int | None = None
    low_resource: int | None = None
    batching: typing.Literal["grouped", "random", "fixed"] = "grouped"
    length_buckets: tuple[int, ...] = ()
    eval_languages: tuple[str, ...] = ()

    def most_train_examples(self, task: Any) -> Any:
        """Returns the maximum number of training examples of a task.

        `None` means all examples. `task` is the task's name.
        """
        own = self.train_examples_of or {}
        return own.get(task, self.max_train_examples)

    @property
    def fixed_lengths(self) -> tuple[Any, ...]:
        """Sorted lengths, in tokens, that fixed batches can have.

        Empty if `batching` is not `"fixed"`.
        """
        if self.batching != "fixed":
            return ()
        shorter = {n for n in self.length_buckets if n < self.max_length}
        return (*sorted(shorter), self.max_length)
