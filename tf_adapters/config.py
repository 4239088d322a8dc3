"""The configuration of a run: frozen dataclasses, strict YAML, overrides.

Later layers win: defaults here, then `official_configs/methods/<method>.yaml`,
then `--config_file`, then `--params_override` and the short flags. What comes
out is saved with the run before its first step.
"""

import dataclasses
import difflib
import functools
from pathlib import Path
import types
import typing

import yaml

from tf_adapters import methods

PRESETS = Path(__file__).parents[1] / "official_configs" / "methods"


class ConfigError(ValueError):
    """A mistake in a configuration, said in one sentence."""


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
            `"random"`, or `"fixed"` (all padded to `max_length`, for TPUs).
    """

    data_dir: str | None = None
    task_file: str | None = None
    max_length: int = 128
    max_train_examples: int | None = None
    low_resource: int | None = None
    batching: str = "grouped"


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
        clip_norm: Largest global norm of the gradients.
        validate_every_steps: Steps between validations; `None` for once an
            epoch.
        early_stopping_patience: Validations without a better metric before the
            run stops, or `None`.
        precision: Keras policy of the encoder: `"float32"` or
            `"mixed_bfloat16"`. What trains is float32 in both.
        encoder_dropout: Whether the frozen encoder's dropout acts.
        log_gradient_norms: Whether each validation logs the gradient norm of
            every trained variable.
    """

    learning_rate: float = 3e-4
    epochs: int = 3
    batch_size: int = 32
    eval_batch_size: int = 64
    warmup_fraction: float = 0.1
    weight_decay: float = 0.01
    clip_norm: float = 1.0
    validate_every_steps: int | None = None
    early_stopping_patience: int | None = None
    precision: str = "float32"
    encoder_dropout: bool = True
    log_gradient_norms: bool = False


@dataclasses.dataclass(frozen=True)
class Config:
    """Everything that decides a run.

    Attributes:
        task: Name of a task, see `--list=tasks`.
        encoder: Name or folder of an encoder, see `--list=encoders`.
        method: A method, see `tf_adapters.methods`.
        seed: Integer. Decides samples, initial weights, order and dropout.
        distribution_strategy: `"one_device"` or `"mirrored"`.
        data: `DataConfig`.
        train: `TrainConfig`.
    """

    task: str
    method: typing.Any
    encoder: str = "minilm"
    seed: int = 0
    distribution_strategy: str = "one_device"
    data: DataConfig = DataConfig()
    train: TrainConfig = TrainConfig()


def resolve(*layers):
    """Returns the `Config` that nested dicts, later ones winning, describe.

    Args:
        *layers: Dicts with the fields of `Config`. `method` is a preset's name
            or a dict with `name` and hyper-parameters.

    Raises:
        ConfigError: If a key is unknown or a value has the wrong type.
    """
    layers = [_with_method_as_dict(layer) for layer in layers]
    name = next(
        (
            layer["method"]["name"]
            for layer in reversed(layers)
            if "name" in layer.get("method", {})
        ),
        "houlsby",
    )
    merged = _preset(name)
    preset_method = merged["method"]["name"]
    for layer in layers:
        layer = {**layer, "method": dict(layer.get("method", {}))}
        layer["method"].pop("name", None)
        # Whoever says how wide wins over a preset that says how much narrower.
        if (
            "units" in layer["method"]
            and "reduction_factor" in merged["method"]
        ):
            layer["method"].setdefault("reduction_factor", None)
        merged = merge(merged, layer)
    merged["method"]["name"] = preset_method
    return _build(merged)


def _build(values):
    options = dict(values["method"])
    cls = methods.METHODS[options.pop("name")]
    try:
        method = from_dict(cls, options, "method.")
    except ValueError as error:
        raise ConfigError(str(error)) from error
    config = from_dict(Config, {**values, "method": method})
    for name, known in _CHOICES.items():
        value = _look_up(config, name)
        if value not in known:
            raise ConfigError(
                f"`{name}` must be one of {', '.join(known)}. Received: {value}"
            )
    for name, least in _MINIMA.items():
        value = _look_up(config, name)
        if value is not None and value < least:
            raise ConfigError(
                f"`{name}` must be at least {least}. Received: {value}"
            )
    return config


def _look_up(config, name):
    for part in name.split("."):
        config = getattr(config, part)
    return config


_MINIMA = {
    "seed": 0,
    "data.max_train_examples": 1,
    "data.low_resource": 1,
    "train.learning_rate": 0.0,
    "train.epochs": 1,
    "train.batch_size": 1,
    "train.eval_batch_size": 1,
    "train.validate_every_steps": 1,
    "train.clip_norm": 1e-12,
}
_CHOICES = {
    "data.batching": ("grouped", "random", "fixed"),
    "train.precision": ("float32", "mixed_bfloat16"),
    "distribution_strategy": ("one_device", "mirrored"),
}


def _with_method_as_dict(layer):
    if isinstance(layer.get("method"), str):
        return {**layer, "method": {"name": layer["method"]}}
    return layer


def preset_names():
    """Returns the names that `--method` takes."""
    return sorted(path.stem for path in PRESETS.glob("*.yaml"))


@functools.cache
def _preset(name):
    path = PRESETS / f"{name}.yaml"
    if not path.exists():
        raise ConfigError(
            f"Unknown method `{name}`. {nearest(name, preset_names())}Known "
            f"methods: {', '.join(preset_names())}"
        )
    return load_yaml(path)


def load_yaml(path):
    """Returns the mapping in a YAML file."""
    try:
        values = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"Cannot read {path}: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not valid YAML: {error}") from error
    if not isinstance(values, dict):
        raise ConfigError(f"{path} must hold a mapping of settings.")
    return values


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
    values = dataclasses.asdict(dataclasses.replace(config, method=None))
    method = methods.to_config(config.method)
    values["method"] = {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in method.items()
    }
    return values


def parse_override(text):
    """Returns `{"a": {"b": value}}` for each item of `"a.b=value,..."`."""
    values = {}
    for item in _split_outside_brackets(text):
        key, equals, value = item.partition("=")
        if not equals:
            raise ConfigError(
                "An override reads `key=value`, for example "
                f"`method.units=256`. Received: {item}"
            )
        try:
            nested = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise ConfigError(f"`{item}` has a malformed value.") from error
        for part in reversed(key.strip().split(".")):
            nested = {part: nested}
        values = merge(values, _with_method_as_dict(nested))
    return values


def _split_outside_brackets(text):
    items, depth = [""], 0
    for character in text:
        depth += (character in "[{") - (character in "]}")
        if character == "," and depth == 0:
            items.append("")
        else:
            items[-1] += character
    return [item for item in items if item.strip()]


def merge(base, layer):
    """Returns `base` updated by `layer`, nested dicts merged."""
    merged = dict(base)
    for key, value in layer.items():
        if isinstance(value, dict) and isinstance(merged.get(key), dict):
            value = merge(merged[key], value)
        merged[key] = value
    return merged


def nearest(name, known):
    """Returns "Did you mean `x`? " where a known name is close, else ""."""
    close = difflib.get_close_matches(str(name), list(known), n=1)
    return f"Did you mean `{close[0]}`? " if close else ""


def from_dict(cls, values, prefix=""):
    """Returns dataclass `cls` from a dict, checked key by key.

    Raises:
        ConfigError: If a key is unknown or missing, or a value has the wrong
            type.
    """
    if not isinstance(values, dict):
        raise ConfigError(
            f"`{prefix.rstrip('.')}` must be a mapping of settings. Received: "
            f"{values!r}"
        )
    fields = {field.name: field for field in dataclasses.fields(cls)}
    for key in values:
        if key not in fields:
            raise ConfigError(
                f"Unknown setting `{prefix}{key}`. {nearest(key, fields)}Known "
                f"settings: {', '.join(prefix + name for name in fields)}"
            )
    hints = typing.get_type_hints(cls)
    built = {
        key: _coerce(value, hints[key], f"{prefix}{key}")
        for key, value in values.items()
    }
    for name, field in fields.items():
        if name not in built and field.default is dataclasses.MISSING:
            raise ConfigError(f"Setting `{prefix}{name}` is missing.")
    return cls(**built)


def _coerce(value, hint, name):
    if dataclasses.is_dataclass(hint):
        return from_dict(hint, value, f"{name}.")
    if hint is typing.Any:
        return value
    if typing.get_origin(hint) is tuple:
        if isinstance(value, list | tuple) and all(
            type(item) is int for item in value
        ):
            return tuple(value)
        raise ConfigError(
            f"Setting `{name}` must be a list of integers. Received: {value!r}"
        )
    accepted = (
        typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    )
    if value is None and types.NoneType in accepted:
        return None
    if float in accepted and not isinstance(value, bool):
        # YAML reads `3e-4`, which has no dot, as text.
        try:
            return float(value)
        except (TypeError, ValueError):
            pass
    if type(value) in accepted:
        return value
    expected = " or ".join(kind.__name__ for kind in accepted)
    raise ConfigError(
        f"Setting `{name}` must be of type {expected}. Received: {value!r} of "
        f"type {type(value).__name__}"
    )
