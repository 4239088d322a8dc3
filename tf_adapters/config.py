"""The configuration of a run: frozen dataclasses, and layers that make them.

Later layers win: defaults here, then `official_configs/methods/<method>.yaml`,
then `--config_file`, then `--params_override` and the short flags. What comes
out is saved with the run before its first step.
"""

import dataclasses
import operator
from pathlib import Path
import typing

import yaml

from tf_adapters import config_task
from tf_adapters import presets
from tf_adapters import settings
from tf_adapters.settings import ConfigError
from tf_adapters.settings import load_yaml
from tf_adapters.settings import merge


@dataclasses.dataclass(frozen=True)
class DataConfig:
    """What is read, and how it is batched.

    Attributes:
        data_dir: Folder of local files or of prepared TFDS sets; `None` for
            TFDS's own.
        task_file: YAML file that defines the task, or `None`.
        max_length: Longest text in tokens, special tokens counted.
        max_train_examples: Training examples to draw with the seed, or `None`
            for all.
        low_resource: `k` of He et al. 2021, section 3.2, or `None`: draw `k`
            training and 1,000 validation examples from the training split and
            test on the original validation split.
        batching: `"grouped"` (batches of similar length, little padding),
            `"random"`, or `"fixed"` (all of `batch_size` rows of
            `max_length` tokens, filled up where rows lack, for TPUs).
        eval_languages: Languages to evaluate a task of many languages in, or
            `("all",)` for those that the data has; see `tasks.languages`.
    """

    data_dir: str | None = None
    task_file: str | None = None
    max_length: int = 128
    max_train_examples: int | None = None
    low_resource: int | None = None
    batching: typing.Literal["grouped", "random", "fixed"] = "grouped"
    eval_languages: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class TrainConfig:
    """How the declared weights are trained.

    Attributes:
        learning_rate: Highest learning rate, reached after the warm-up.
        epochs: Passes over the training examples.
        batch_size: Examples in a step, over all replicas.
        eval_batch_size: Examples in a batch of evaluation and prediction.
        warmup_fraction: Share of the steps in which the rate grows linearly;
            it then falls linearly to zero (Houlsby et al. 2019, section 3.1).
        weight_decay: Decoupled decay, not on norms and biases.
        accumulation_steps: Parts that each batch is computed in, one after the
            other, for batches that do not fit into memory whole.
        max_steps: Steps after which training ends, if the epochs have more.
        clip_norm: Largest global norm of the gradients.
        validate_every_steps: Steps between validations; `None` for once an
            epoch.
        early_stopping_patience: Validations without a better metric before the
            run stops, or `None`.
        precision: Keras policy of the encoder: `"float32"` or
            `"mixed_bfloat16"`. What trains is float32 in both.
        encoder_dropout: Whether the frozen encoder's dropout acts.
        checkpoint_seconds: Least time between two checkpoints, from which a
            stopped run goes on.
        log_gradient_norms: Whether each validation logs the gradient norm of
            every trained variable.
    """

    learning_rate: float = 3e-4
    epochs: int = 3
    batch_size: int = 32
    eval_batch_size: int = 64
    warmup_fraction: float = 0.1
    weight_decay: float = 0.01
    accumulation_steps: int = 1
    max_steps: int | None = None
    clip_norm: float = 1.0
    validate_every_steps: int | None = None
    early_stopping_patience: int | None = None
    precision: typing.Literal["float32", "mixed_bfloat16"] = "float32"
    encoder_dropout: bool = True
    checkpoint_seconds: float = 120.0
    log_gradient_norms: bool = False


@dataclasses.dataclass(frozen=True)
class PretrainConfig:
    """Task-adaptive pretraining: masked language modelling before the task.

    What the method trains goes on from there; see `training.pretraining`.

    Attributes:
        steps: Steps on the task's own training texts; 0 for none.
        learning_rate: Highest learning rate. Defaults to 1e-4, that of He et
            al. 2021, section 3.1, for adapters.
        batch_size: Texts in a step.
        whole_words: Whether whole words are hidden, not single tokens.
    """

    steps: int = 0
    learning_rate: float = 1e-4
    batch_size: int = 32
    whole_words: bool = False


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
class Config:
    """Everything that decides a run.

    Attributes:
        task: Name of a task, see `--list=tasks`; where several train together
            all of their names with `+` between.
        encoder: Name or folder of an encoder, see `load_encoder`.
        method: A method, see `tf_adapters.methods`.
        seed: Integer. Decides samples, initial weights, order and dropout.
        distribution_strategy: `"one_device"` or `"mirrored"`.
        data: `DataConfig`.
        train: `TrainConfig`.
        members: `MembersConfig`; only fusion reads it.
        pretrain: `PretrainConfig`.
        init_adapter: Folder of a run or of an adapter of the same method and
            encoder, whose weights but for its head are the initial ones.
    """

    task: str
    method: typing.Any
    encoder: str = "minilm"
    seed: int = 0
    distribution_strategy: typing.Literal["one_device", "mirrored"] = (
        "one_device"
    )
    data: DataConfig = DataConfig()
    train: TrainConfig = TrainConfig()
    members: MembersConfig = MembersConfig()
    pretrain: PretrainConfig = PretrainConfig()
    init_adapter: str | None = None


def resolve(*layers):
    """Returns the `Config` that nested dicts, later ones winning, describe.

    Args:
        *layers: Dicts with the fields of `Config`. `method` is a preset's name
            or a dict with `name` and hyper-parameters.

    Raises:
        ConfigError: If a key is unknown or a value has the wrong type.
    """
    return build_method(combine(*layers))


def combine(*layers):
    """Returns what `resolve` returns, but `method` as a dict, not yet checked.

    It needs no Keras, which takes seconds to import.
    """
    merged = {}
    for layer in presets.with_preset(layers):
        merged = merge(merged, config_task.with_task_of_file(layer, merged))
    config = settings.from_dict(Config, config_task.with_name_of_tasks(merged))
    _check_values(config)
    return config


def build_method(config):
    """Returns the configuration from `combine` with its method built."""
    try:
        method = _build(config.method, "method.")
    except ValueError as error:
        raise ConfigError(str(error)) from error
    return dataclasses.replace(config, method=method)


def _build(options, prefix):
    # Here, not above: Keras comes with it.
    from tf_adapters import methods

    options = dict(options)
    cls = methods.METHODS[options.pop("name")]
    if "adapter" in options:  # A method, too.
        adapter = presets.complete(options["adapter"])
        options["adapter"] = _build(adapter, f"{prefix}adapter.")
    return settings.from_dict(cls, options, prefix)


def _check_values(config):
    for name, least in _MINIMA.items():
        value = operator.attrgetter(name)(config)
        if value is not None and value < least:
            raise ConfigError(
                f"`{name}` must be at least {least}. Received: {value}"
            )
    if config.data.max_train_examples and config.data.low_resource:
        raise ConfigError(
            "`data.max_train_examples` and `data.low_resource` both say how "
            "many training examples are drawn. Give one of the two. Received: "
            f"{config.data.max_train_examples} and {config.data.low_resource}"
        )


_MINIMA = {
    "seed": 0,
    "data.max_train_examples": 1,
    "data.low_resource": 1,
    "train.learning_rate": 0.0,
    "train.epochs": 1,
    "train.batch_size": 1,
    "train.eval_batch_size": 1,
    "train.validate_every_steps": 1,
    "train.accumulation_steps": 1,
    "train.max_steps": 1,
    "pretrain.steps": 0,
    "pretrain.learning_rate": 0.0,
    "pretrain.batch_size": 1,
    "train.clip_norm": 1e-12,
    "train.checkpoint_seconds": 0.0,
}


def parse_override(text):
    """Returns the nested dict of `"a.b=value,c=value,..."`."""
    values = {}
    for layer in settings.parse_items(text):
        values = merge(values, presets.with_method_as_dict(layer))
    return values


def with_absolute_paths(config):
    """Returns a configuration that means the same from any folder.

    Names of encoders that are no folders here stay names.
    """
    data = dataclasses.replace(
        config.data,
        data_dir=_absolute(config.data.data_dir),
        task_file=_absolute(config.data.task_file),
    )
    encoder = config.encoder
    # As `load_encoder` has it: this one is never a folder.
    if encoder != "minilm" and Path(encoder).is_dir():
        encoder = _absolute(encoder)
    return dataclasses.replace(
        config,
        data=data,
        encoder=encoder,
        init_adapter=_absolute(config.init_adapter),
    )


def _absolute(path):
    return None if path is None else str(Path(path).expanduser().absolute())


def save(config, path):
    """Writes a configuration so that `load` gives an equal one."""
    Path(path).write_text(
        yaml.safe_dump(to_dict(config), sort_keys=False), encoding="utf-8"
    )


def load(path):
    """Returns the configuration that `save` wrote."""
    return resolve(load_yaml(path))


def to_dict(config):
    """Returns a configuration as nested dicts of plain values."""
    from tf_adapters import methods

    values = dataclasses.asdict(dataclasses.replace(config, method=None))
    method = methods.to_config(config.method)
    values["method"] = {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in method.items()
    }
    return values
