"""Runs the Keras callbacks of `train.callbacks` in this library's loop."""

from collections.abc import Iterator
import importlib
from typing import TYPE_CHECKING
from typing import Any

import keras

from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import shown
from tf_adapters.common.extras import needs_extra
from tf_adapters.common.types import Tensor

if TYPE_CHECKING:
    from tf_adapters.training.trainer_protocol import TrainerProtocol

# Keras callbacks of other packages. Each package is an optional extra of this
# library.
NAMES = {
    "mlflow": "mlflow.keras:MlflowCallback",
    "wandb": "wandb.integration.keras:WandbMetricsLogger",
}


def make_callbacks(items: object) -> list[keras.callbacks.Callback]:
    """Creates the callbacks that `train.callbacks` lists.

    Args:
        items: List of names, or of dicts with `name` and the arguments of the
            callback. A name is one of `NAMES` or has the form `module:Class`.
            `None` for no callbacks.

    Raises:
        ConfigError: If an item is not a callback, or cannot be imported or
            created.
    """
    if not isinstance(items, list | tuple | None):
        raise ConfigError(
            "`train.callbacks` is a list, for example [mlflow] or "
            f"[my_module:MyCallback]. Received: {shown(items)}"
        )
    return [_make(item) for item in items or ()]


def _make(item: object) -> keras.callbacks.Callback:
    settings = {"name": item} if isinstance(item, str) else item
    is_mapping = isinstance(settings, dict)
    if not (is_mapping and isinstance(settings.get("name"), str)):
        raise ConfigError(
            "An item of `train.callbacks` is a name, or a mapping of `name` "
            f"and the callback's arguments. Received: {shown(item)}"
        )
    settings = dict(settings)
    name = settings.pop("name")
    cls = _find(name)
    try:
        return cls(**settings)
    except Exception as error:  # A third-party constructor may raise anything.
        raise ConfigError(
            f"The callback `{shown(name)}` of `train.callbacks` cannot be "
            f"made: {type(error).__name__}: {error!s:.200}"
        ) from error


def _find(name: Any) -> type[keras.callbacks.Callback]:
    if name in NAMES:
        with needs_extra(name, f"The callback `{name}`"):
            cls = _imported(NAMES[name])
        if name == "wandb":
            _begin_wandb_run()
        return cls
    try:
        cls = _imported(name)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise ConfigError(
            f"There is no callback {shown(name)}: {error!s:.200} Expected: "
            f"{', '.join(NAMES)}, or `module:Class` of a module that Python "
            "finds."
        ) from error
    is_class = isinstance(cls, type)
    if not (is_class and issubclass(cls, keras.callbacks.Callback)):
        raise ConfigError(
            f"`{shown(name)}` of `train.callbacks` is not a subclass of "
            "`keras.callbacks.Callback`."
        )
    return cls


def _imported(path: object) -> Any:
    module, colon, name = str(path).partition(":")
    if not colon:
        raise ValueError("It names no module.")
    return getattr(importlib.import_module(module), name)


def _begin_wandb_run() -> None:
    # The callback requires a W&B run, which environment variables configure.
    import wandb

    if wandb.run is None:
        wandb.init()


class LoopCallbacks:
    """Calls Keras callbacks when training and epochs begin and end.

    Their `on_train_batch_end` is called after each device call, which can be
    several steps. The callbacks cannot stop the training: `model.stop_training`
    has no effect.

    The `logs` that callbacks receive at the end of an epoch contain the latest
    values in `metrics.jsonl`, named as in TensorBoard, for example `loss` and
    `validation/accuracy`.

    Args:
        callbacks: List of `keras.callbacks.Callback`.
        trainer: See `TrainerProtocol`. Its optimizer must exist.
        epochs: Number of epochs, which callbacks find in `params`.
    """

    def __init__(
        self,
        callbacks: list[keras.callbacks.Callback],
        trainer: "TrainerProtocol",
        epochs: int,
    ) -> None:
        self._list = keras.callbacks.CallbackList(
            callbacks, add_history=False, add_progbar=False, epochs=epochs
        )
        self._has_any = bool(callbacks)
        # Whether any callback has a method to call after each batch. If not,
        # losses are not read, since reading them waits for the device.
        self.want_batches = any(map(_overrides_batch_end, callbacks))
        self._logs = {}
        if callbacks:
            # MLflow and W&B read `model.optimizer`, which Keras's `compile`
            # would set. Here, the model is not compiled.
            trainer.model.optimizer = trainer.optimizer
            self._list.set_model(trainer.model)

    def note(self, record: dict[str, Any]) -> None:
        """Stores the values of a record, for the logs at the epoch's end.

        Nested dicts are flattened: `validation/accuracy`.
        """
        self._logs |= dict(_flat(record))

    def train_begins(self, step: int) -> None:
        """Calls the callbacks' `on_train_begin`.

        Args:
            step: Number of steps done before, 0 unless the run was resumed.
        """
        if self._has_any:
            self._list.on_train_begin({"step": step})

    def epoch_begins(self, epoch: int) -> None:
        if self._has_any:
            self._list.on_epoch_begin(epoch)

    def batches_end(self, step: int, losses: Tensor) -> None:
        """Calls the callbacks' `on_train_batch_end` after a device call.

        Args:
            step: Number of steps done.
            losses: Losses of the steps of this device call. The callbacks
                receive their mean.
        """
        if self.want_batches:
            mean = float(keras.ops.mean(losses))
            self._list.on_train_batch_end(step - 1, {"loss": mean})

    def epoch_ends(self, epoch: int) -> None:
        if self._has_any:
            self._list.on_epoch_end(epoch, dict(self._logs))

    def train_ends(self) -> None:
        if self._has_any:
            self._list.on_train_end(dict(self._logs))


def _overrides_batch_end(callback: keras.callbacks.Callback) -> bool:
    base = keras.callbacks.Callback
    # `LambdaCallback` has functions as attributes of the instance.
    return any(
        getattr(getattr(callback, name), "__func__", None)
        is not getattr(base, name)
        for name in ("on_train_batch_end", "on_batch_end")
    )


def _flat(
    record: dict[str, Any], prefix: str = ""
) -> Iterator[tuple[str, Any]]:
    for name, value in record.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}/")
        else:
            yield f"{prefix}{name}", value
