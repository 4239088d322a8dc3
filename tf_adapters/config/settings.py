"""The settings of a run and their defaults, as frozen dataclasses."""

import dataclasses
import typing

from tf_adapters.config.data_settings import DataConfig

# Strategies that use more than this machine's own devices.
CLUSTERS = ("multi_worker_mirrored", "tpu")
# Two runs that differ only in these settings count as equal: paths of data, the
# TPU, and how a device computes. The data itself is compared by its
# fingerprints.
FILES = ("data.file", "data.validation_file", "data.test_file")
_DEVICE = ("tpu", "train.jit_compile", "train.deterministic")
ELSEWHERE = ("data.data_dir", *_DEVICE, *FILES)


@dataclasses.dataclass(frozen=True)
class TrainConfig:
    """How the trainable weights are trained.

    Attributes:
        learning_rate: Highest learning rate, reached after the warm-up.
        epochs: Number of passes over the training examples.
        batch_size: Number of examples in a step, over all replicas.
        eval_batch_size: Number of examples in a batch of evaluation and
            prediction.
        warmup_fraction: Fraction of the steps in which the learning rate rises
            linearly from zero. See `decay` for the other steps. Houlsby et al.
            2019, section 3.1, use a tenth; the other papers state no warm-up.
        weight_decay: Decoupled weight decay of kernels and embeddings. Other
            weights are excluded, such as norms, biases, prompts, gates, and the
            factors of Compacter.
        steps_per_loop: Number of steps that the device runs in one call.
            Between two calls the host checks losses, validates and writes
            checkpoints. Use many on TPUs.
        accumulation_steps: Number of micro-batches into which each batch is
            split (gradient accumulation). They are computed one after the
            other, for batches that do not fit into memory.
        remat: Whether a block's activations are computed again in the backward
            pass instead of stored. This takes less memory and more time, and
            gives the same gradients.
        max_steps: Number of steps after which training ends, even within an
            epoch. `None` for all epochs.
        min_steps: Smallest number of training steps, or `None`. Epochs are
            added if there are fewer, and the run does not stop early before.
            Only for runs of one task.
        decay: `"linear"`: the learning rate falls to zero after the warm-up.
            `"none"`: it stays constant.
        clip_norm: Largest global norm of the gradients, or `None` for no
            clipping.
        validate_every_steps: Number of steps between validations. `None` for
            once an epoch.
        early_stopping_patience: Number of validations without improvement
            after which the run stops, or `None` to never stop early.
        select_by: Metric that selects the best weights; it must suit the
            task's kind. `None` for the task's first metric. Houlsby et al.
            (section 3.1) and Pfeiffer et al. (section 4) select by accuracy.
        keep: Weights to keep at the end: the `"best"` on validation, or the
            `"last"` (Han et al. 2021, figures 1, 4 and 9). With `"last"` the
            run does not stop early.
        snapshot_steps: Number of steps between snapshots, or `None` for none.
            A snapshot is an adapter folder with the current weights,
            `snapshots/<step>` in the run folder, for `init_adapter` (Han et
            al. 2021, figures 1 and 9, tune after so many steps of
            pretraining).
        evaluate_loss: Whether evaluations include the `loss` as a metric (He
            et al. 2021, figures 5 and 10). Of validations with the same value
            of the metric that selects the weights, the one with the lowest
            loss is then the best; without it, and in runs of several tasks,
            the first. With `--data`, the default is `true`, except for
            `no_bert`.
        precision: Keras dtype policy of the encoder: `"float32"`,
            `"mixed_bfloat16"`, or `"mixed_float16"` for GPUs without bfloat16,
            such as a T4. The latter scales the loss. Trained weights are
            float32 in all three.
        encoder_dropout: Whether the frozen encoder's dropout is active in
            training.
        checkpoint_seconds: Shortest time between two checkpoints, in seconds.
            A stopped run resumes from the latest.
        adapter_drop: Smallest and largest number of blocks whose adapters are
            disabled in a training step, such as `[0, 5]`. Each step draws a
            number in this range, and disables the adapters of that many blocks,
            counted from the first (Rueckle et al. 2021, "robust AdapterDrop").
            With `steps_per_loop`, all steps of a device call share a number.
            The backward pass ends at the first block that trains. `[]` for
            none.
        cache_frozen_blocks: Type in which to cache the output of the encoder's
            first blocks, if nothing in them is trained or random. Later passes
            then skip these blocks. `"float32"` is exact, `"float16"` and
            `"bfloat16"` take half the space, `"off"` caches nothing. In
            training, the cache requires `encoder_dropout=false`.
        jit_compile: Whether XLA compiles the steps of training and
            evaluation, one program for each shape of a batch. `None` (default)
            compiles on GPUs. Batches are then padded to at most four lengths,
            unless `data.batching` is `"fixed"`. A TPU always compiles.
        deterministic: Whether equal runs give bit-identical results on GPUs.
            Operations without a fixed order of summation are then replaced by
            slower ones. `None` (default) replaces none. On CPUs, equal runs
            give bit-identical results in any case.
        calibrate: Whether to fit the temperature of a classification's
            probabilities on the validation split after training; see
            `head.temperature`.
        log_gradient_norms: Whether each validation logs the gradient norm of
            every trained variable.
        callbacks: List of Keras callbacks that observe the training, or `None`
            for none. Each is `mlflow`, `wandb` or your own `module:Class`, or
            a mapping with such a `name` and the callback's arguments. They are
            called for epochs, with the logged values, and for steps only if
            they request it. They cannot stop the training, see
            `early_stopping_patience`.
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
    adapter_drop: tuple[int, ...] = ()
    cache_frozen_blocks: typing.Literal[
        "float32", "float16", "bfloat16", "off"
    ] = "float32"
    jit_compile: bool | None = None
    deterministic: bool | None = None
    calibrate: bool = False
    log_gradient_norms: bool = False
    callbacks: typing.Any = None


@dataclasses.dataclass(frozen=True)
class PretrainConfig:
    """Task-adaptive pretraining: masked language modeling before the task.

    The method's trained weights are then the initial weights for the task; see
    `runs.pretraining`.

    Attributes:
        steps: Number of steps on the task's own training texts. 0 for none.
        learning_rate: Highest learning rate. Defaults to 1e-4, as for adapters
            in He et al. 2021, section 3.1.
        batch_size: Number of texts in a step.
        whole_words: Whether to mask whole words instead of single tokens.
        adapters_only: Whether to train only the weights that the method adds to
            the encoder. The norms and the masked language modeling head, which
            the checkpoint must have, stay frozen (He et al. 2021, section 3.1).
    """

    steps: int = 0
    learning_rate: float = 1e-4
    batch_size: int = 32
    whole_words: bool = False
    adapters_only: bool = False


@dataclasses.dataclass(frozen=True)
class MembersConfig:
    """The single-task adapters that a fusion combines.

    If no trained adapters are given, the run trains these adapters first.

    Attributes:
        tasks: Names of tasks. An adapter is trained for each.
        settings: Settings of the members' runs. Encoder, data, seed, backend,
            strategy and precision are taken from the fusion's own run.
    """

    tasks: tuple[str, ...] = ()
    settings: typing.Any = None


@dataclasses.dataclass(frozen=True)
class SearchConfig:
    """The search for the best network of `no_bert`, which has no encoder.

    Attributes:
        trials: Number of networks to try. The best on validation is used.
        space: Dict from a setting of the network to a list of values, or to a
            range with `low`, `high` and optionally `log`. The preset `no_bert`
            defines a space.
    """

    trials: int = 0
    space: typing.Any = None


@dataclasses.dataclass(frozen=True)
class Config:
    """All settings of a run.

    Attributes:
        task: Name of a task; see `--list=tasks`. If several are trained
            together, all their names, joined by `+`.
        encoder: `minilm`, a KerasHub preset, a Hugging Face folder,
            `hf://owner/name`, or the folder of a run that trained an encoder;
            see `--list=encoders`.
        quantize: `"int8"` or `"int4"`, to store the frozen encoder's kernels
            and embeddings in 8 or 4 bits, or `None`. Methods that train them
            are refused. An adapter can be trained without quantization and
            evaluated with it.
        method: A method; see `tf_adapters.methods`.
        seed: Random seed for the choice and order of examples, the initial
            weights and dropout, at most 4,294,967,295.
        backend: Backend of Keras with which the run trains, `"tensorflow"` or
            `"jax"`. Data are read by TensorFlow in both cases.
        distribution_strategy: `"one_device"`, `"mirrored"`,
            `"multi_worker_mirrored"` or `"tpu"`; see `make_strategy`.
        tpu: Name or address of the TPU, for `"tpu"`.
        head: Dict of settings that override the defaults of the task's head,
            such as `{"reads": "pooled_output"}`, or `None`; see
            `tf_adapters.heads`.
        data: `DataConfig`.
        train: `TrainConfig`.
        members: `MembersConfig`. Used by fusion only.
        pretrain: `PretrainConfig`.
        search: `SearchConfig`. Used by `no_bert` only.
        init_adapter: Folder of a run or of an adapter with the same method and
            encoder. The adapter's weights, except the head's, are the initial
            weights.
        stack_on: Folder of a run or of an adapter, such as a language's, that
            stays frozen and on which the trained adapter is stacked. This is
            MAD-X (Pfeiffer et al. 2020, arXiv:2005.00052, section 3.3).
        language_adapters: Dict from a language of `data.eval_languages` to the
            folder of the adapter that replaces `stack_on` for this language.
    """

    task: str
    method: typing.Any
    encoder: str = "minilm"
    quantize: typing.Literal["int8", "int4"] | None = None
    seed: int = 0
    backend: typing.Literal["tensorflow", "jax"] = "tensorflow"
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
