"""The settings of a run and their defaults, as frozen dataclasses."""

import dataclasses
import typing

# Strategies over more than this machine's own devices.
CLUSTERS = ("multi_worker_mirrored", "tpu")
# Where data and TPU are makes no other run; the data's fingerprints do.
FILES = ("data.file", "data.validation_file", "data.test_file")
ELSEWHERE = ("data.data_dir", "tpu", *FILES)


@dataclasses.dataclass(frozen=True)
class DataConfig:
    """What is read, and how it is batched.

    Attributes:
        data_dir: Folder with `<task>/{train,dev,test}.{jsonl,csv,tsv}`, GLUE's
            own layout, or sets prepared by TensorFlow Datasets; `None` for the
            folder of TensorFlow Datasets.
        task_file: YAML file that defines a task of your own, or `None`.
        file: Table of texts and labels to train on, `.csv`, `.tsv` or `.jsonl`.
            It replaces a named task and a task file.
        text: Column of the table that holds the texts, or two columns.
        label: Column of the table that holds the labels.
        head: `"classification"`, where the labels are classes, or
            `"regression"`, where they are numbers. The classes are those that
            occur in `file`.
        validation_file: Table to validate on. `None` for a tenth of each class
            in `file`, drawn with the seed.
        test_file: Table to test on. `None` for no test.
        max_length: Longest text in tokens, special tokens counted.
        doc_stride: Tokens between the beginnings of two windows of a text that
            is too long to look for an answer in, at most.
        windows: Most windows of a text that is longer than `max_length`, where
            a text has one class, several labels or a number. The windows
            overlap, and the text's output is the mean or the maximum of
            theirs, in training, too. 1 cuts the text. Not for pairs.
        window_stride: Tokens between the beginnings of two such windows, at
            most `max_length` - 2. `None` for three quarters of that.
        pooling: `"mean"` or `"max"` of the windows' logits or numbers.
        max_train_examples: Training examples to draw with the seed, or `None`
            for all.
        train_examples_of: Dict from a task to its own number in place of
            `max_train_examples`, where runs have several tasks, as those of a
            fusion's members or of method `multitask`; or `None`.
        train_fraction: Part of the training examples to draw with the seed, at
            least one, or `None` for all (He et al. 2021, table 4: 0.05, 0.1,
            0.2).
        max_validation_examples: Validation examples to draw, the same for all
            seeds, or `None` for all.
        max_test_examples: Test examples to draw, of each of `eval_languages`
            too, the same for all seeds, or `None` for all. Those of
            `low_resource` stay whole.
        low_resource: `k` of He et al. 2021, section 3.2, or `None`: draw `k`
            training and 1,000 validation examples from the training split and
            test on the original validation split.
        batching: `"grouped"` (batches of similar length, little padding),
            `"random"`, or `"fixed"` (all of `batch_size` rows, filled up where
            rows lack, of `max_length` tokens or one of `length_buckets`, for
            TPUs).
        length_buckets: Shorter lengths that fixed batches may have; a text goes
            into a batch of the smallest that holds it.
        eval_languages: Languages to evaluate a task of many languages in, or
            `all` for those that the data has; see `tasks.languages`.
    """

    data_dir: str | None = None
    task_file: str | None = None
    file: str | None = None
    text: tuple[str, ...] = ("text",)
    label: str = "label"
    head: typing.Literal["classification", "regression"] = "classification"
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

    def most_train_examples(self, task):
        """Returns the number of training examples of a task, `None` for all."""
        own = self.train_examples_of or {}
        return own.get(task, self.max_train_examples)

    @property
    def fixed_lengths(self):
        """All lengths of fixed batches, ascending; `()` for other batches."""
        if self.batching != "fixed":
            return ()
        shorter = {n for n in self.length_buckets if n < self.max_length}
        return (*sorted(shorter), self.max_length)


@dataclasses.dataclass(frozen=True)
class TrainConfig:
    """How the declared weights are trained.

    Attributes:
        learning_rate: Highest learning rate, reached after the warm-up.
        epochs: Passes over the training examples.
        batch_size: Examples in a step, over all replicas.
        eval_batch_size: Examples in a batch of evaluation and prediction.
        warmup_fraction: Share of the steps in which the rate grows linearly;
            it then falls linearly to zero (Houlsby et al. 2019, section 3.1;
            the other papers give no warm-up).
        weight_decay: Decoupled decay, not on norms and biases.
        steps_per_loop: Steps that the device does in one call. Between two
            calls the host looks at losses, validates and writes checkpoints.
            TPUs want many.
        accumulation_steps: Parts that each batch is computed in, one after the
            other, for batches that do not fit into memory whole.
        remat: Whether a block's activations are computed again in the backward
            pass, not kept, for models and batches that do not fit into memory:
            less memory, more time, the same gradients.
        max_steps: Steps after which training ends, if the epochs have more.
        min_steps: Steps that training has at least: where the epochs have
            fewer, there are more epochs; or `None`. Only for runs of one task.
        decay: `"linear"`: the rate falls to zero after the warm-up; `"none"`:
            it stays.
        clip_norm: Largest global norm of the gradients, or `None` for any.
        validate_every_steps: Steps between validations; `None` for once an
            epoch.
        early_stopping_patience: Validations without a better metric before the
            run stops, or `None`.
        select_by: Metric that chooses the best weights, of those that suit the
            task's kind; `None` for the task's first. Houlsby et al. (section
            3.1) and Pfeiffer et al. (section 4) choose by accuracy.
        keep: Which weights a run ends with: the `"best"` on validation, or the
            `"last"` (Han et al. 2021, figures 1, 4 and 9); then nothing stops
            early.
        snapshot_steps: Steps between snapshots, or `None` for none: adapter
            folders of the weights as they are then, `snapshots/<step>` in the
            run folder, which `init_adapter` takes (Han et al. 2021, figures 1
            and 9, tune after so many steps of pretraining).
        evaluate_loss: Whether evaluations have the `loss` among their metrics
            (He et al. 2021, figures 5 and 10).
        precision: Keras policy of the encoder: `"float32"`,
            `"mixed_bfloat16"`, or `"mixed_float16"` for GPUs without bfloat16,
            such as a T4; the loss is then scaled. What trains is float32 in
            all three.
        encoder_dropout: Whether the frozen encoder's dropout acts.
        checkpoint_seconds: Least time between two checkpoints, from which a
            stopped run goes on.
        deterministic: Whether equal runs are equal bit for bit on GPUs too,
            where operations whose sums have no fixed order then give way to
            slower ones.
        calibrate: Whether the temperature of a classification's probabilities
            is fitted on validation after the training, see `head.temperature`.
        log_gradient_norms: Whether each validation logs the gradient norm of
            every trained variable.
        callbacks: List of Keras callbacks that watch the training: `mlflow`,
            `wandb`, or `module:Class` of your own; or mappings of such a `name`
            and the callback's arguments. `None` for none. They are told of
            epochs, with what was logged; of steps only where they ask.
    """

    learning_rate: float = 3e-4
    epochs: int = 3
    batch_size: int = 32
    eval_batch_size: int = 64
    warmup_fraction: float = 0.1
    weight_decay: float = 0.01
    steps_per_loop: int = 1
    accumulation_steps: int = 1
    remat: bool = False
    max_steps: int | None = None
    min_steps: int | None = None
    decay: typing.Literal["linear", "none"] = "linear"
    clip_norm: float | None = 1.0
    validate_every_steps: int | None = None
    early_stopping_patience: int | None = None
    select_by: str | None = None
    keep: typing.Literal["best", "last"] = "best"
    snapshot_steps: int | None = None
    evaluate_loss: bool = False
    precision: typing.Literal["float32", "mixed_bfloat16", "mixed_float16"] = (
        "float32"
    )
    encoder_dropout: bool = True
    checkpoint_seconds: float = 120.0
    deterministic: bool = True
    calibrate: bool = False
    log_gradient_norms: bool = False
    callbacks: typing.Any = None


@dataclasses.dataclass(frozen=True)
class PretrainConfig:
    """Task-adaptive pretraining: masked language modelling before the task.

    What the method trains goes on from there; see `runs.pretraining`.

    Attributes:
        steps: Steps on the task's own training texts; 0 for none.
        learning_rate: Highest learning rate. Defaults to 1e-4, that of He et
            al. 2021, section 3.1, for adapters.
        batch_size: Texts in a step.
        whole_words: Whether whole words are hidden, not single tokens.
        adapters_only: Whether nothing trains but what the method adds to the
            encoder: neither norms nor the checkpoint's own head for masked
            tokens, which it must have (He et al. 2021, section 3.1).
    """

    steps: int = 0
    learning_rate: float = 1e-4
    batch_size: int = 32
    whole_words: bool = False
    adapters_only: bool = False


@dataclasses.dataclass(frozen=True)
class MembersConfig:
    """The single-task adapters that fusion trains first, where none are given.

    Attributes:
        tasks: Names of tasks; an adapter is trained for each.
        settings: Settings of their runs. Encoder, data, seed, strategy and
            precision are those of the fusion's own run.
    """

    tasks: tuple[str, ...] = ()
    settings: typing.Any = None


@dataclasses.dataclass(frozen=True)
class SearchConfig:
    """The search of method `no_bert` for a network without an encoder.

    Attributes:
        trials: Networks to try; the best on validation counts.
        space: From a setting of the network to a list to choose from, or to
            `low`, `high` and perhaps `log` of a range; those of the preset
            `no_bert`.
    """

    trials: int = 0
    space: typing.Any = None


@dataclasses.dataclass(frozen=True)
class Config:
    """Everything that decides a run.

    Attributes:
        task: Name of a task, see `--list=tasks`; where several train together
            all of their names with `+` between.
        encoder: `minilm`, a KerasHub preset, a Hugging Face folder,
            `hf://owner/name`, or the folder of a run that trained an encoder;
            see `--list=encoders`.
        method: A method, see `tf_adapters.methods`.
        seed: Decides samples, initial weights, order and dropout; at most
            4,294,967,295.
        distribution_strategy: `"one_device"`, `"mirrored"`,
            `"multi_worker_mirrored"` or `"tpu"`, see `make_strategy`.
        tpu: Name or address of the TPU, for `"tpu"`.
        head: Settings of the task's head in place of its defaults, a dict such
            as `{"reads": "pooled_output"}`, or `None`; see `tf_adapters.heads`.
        data: `DataConfig`.
        train: `TrainConfig`.
        members: `MembersConfig`; only fusion reads it.
        pretrain: `PretrainConfig`.
        search: `SearchConfig`; only `no_bert` reads it.
        init_adapter: Folder of a run or of an adapter of the same method and
            encoder, whose weights but for its head are the initial ones.
        stack_on: Folder of a run or of an adapter that stays frozen below what
            trains, a language's for example. That is MAD-X (Pfeiffer et al.
            2020, arXiv:2005.00052, section 3.3).
        language_adapters: Dict from a language of `data.eval_languages` to the
            folder of the adapter that takes the place of `stack_on` there.
    """

    task: str
    method: typing.Any
    encoder: str = "minilm"
    seed: int = 0
    distribution_strategy: typing.Literal[
        "one_device", "mirrored", "multi_worker_mirrored", "tpu"
    ] = "one_device"
    tpu: str = ""
    head: typing.Any = None
    data: DataConfig = DataConfig()
    train: TrainConfig = TrainConfig()
    members: MembersConfig = MembersConfig()
    pretrain: PretrainConfig = PretrainConfig()
    search: SearchConfig = SearchConfig()
    init_adapter: str | None = None
    stack_on: str | None = None
    language_adapters: typing.Any = None
