"""Remembers an encoder's original weights, and which model changed them.

All models of an encoder use the same layers. A method that trains layer norms,
biases or all weights therefore changes the encoder for all its models.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING
from typing import Any
import weakref

import numpy as np

from tf_adapters.common.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable

    import keras
    import keras_hub


class User:
    """A model that uses an encoder, or several models trained together.

    Args:
        name: The model's name, for messages.
        trains_encoder: Whether it trains some of the encoder's weights.

    Attributes:
        is_folded: Whether the model's weights are folded into the encoder's.
    """

    def __init__(self, name: str, trains_encoder: bool) -> None:
        self.name = name
        self.trains_encoder = trains_encoder
        self.is_folded = False


class LoadedWeights:
    """The original values of an encoder's weights, and their current `User`.

    Call `loaded_weights(backbone)` to get the instance of a backbone.
    """

    def __init__(self) -> None:
        # The fingerprint, if it cannot be computed from the weights, because
        # they are quantized or come from a `.keras` file.
        self.given_fingerprint: str | None = None
        # Whether the original weights are unknown: a `.keras` file only
        # contains the weights after training.
        self.is_of_file = False
        # `"int8"` or `"int4"` if the weights are quantized, else `None`.
        self.quantization: str | None = None
        # The number of weights before they were quantized.
        self.num_weights: int | None = None
        # Dict from the path of each weight that some model trains to the
        # variable and its original value.
        self._loaded = {}
        self._changed_by = None
        self._trainers = weakref.WeakSet()
        self._restored = weakref.WeakSet()
        # Dict from each inactive user to the values that it trained, by path.
        self._put_away = weakref.WeakKeyDictionary()

    def keep(self, variables: Iterable[keras.Variable], user: User) -> None:
        """Stores the original values of the weights that a user may change."""
        for variable in variables:
            if variable.path not in self._loaded:
                value = np.array(variable.numpy())
                self._loaded[variable.path] = variable, value
        if user.trains_encoder:
            self._trainers.add(user)

    def values(self) -> dict[str, np.ndarray]:
        """Returns the stored original values, as a dict from path to array."""
        return {path: value for path, (_, value) in self._loaded.items()}

    def replace(self, values: dict[str, np.ndarray]) -> None:
        """Replaces stored original values. `values` maps paths to arrays.

        This is used for encoders from files, whose weights are random until the
        file is read.
        """
        for path, value in values.items():
            variable, _ = self._loaded[path]
            self._loaded[path] = variable, value

    def put_away(self, user: User) -> dict[str, np.ndarray]:
        """Returns the stored weights of an inactive user.

        They are a dict from path to array, which is empty if none are stored.
        """
        return self._put_away.get(user, {})

    def keep_for(self, user: User, values: dict[str, np.ndarray]) -> None:
        """Stores an inactive user's weights. `values` maps paths to arrays."""
        self._put_away[user] = values

    def changed(self) -> list[str]:
        """Returns the paths of weights that differ from the original ones."""
        return [
            path
            for path, (variable, value) in self._loaded.items()
            if not np.array_equal(variable.numpy(), value)
        ]

    def hold(self, user: User) -> None:
        """Records that a user is about to change the weights."""
        self._changed_by = user

    def release(self, user: User) -> None:
        """Undoes `hold` for a user that has changed the weights back."""
        if self._changed_by is user and not user.trains_encoder:
            self._changed_by = None

    def check(self, user: User, encoder: str) -> None:
        """Raises a `UserError` if the current weights belong to another user.

        Args:
            user: The `User` that is about to compute, train or be saved.
            encoder: The encoder's name, for the message.
        """
        if self._changed_by is user:
            return
        if user in self._restored:
            raise UserError(
                f"The weights that `{user.name}` trained in encoder "
                f"`{encoder}` are gone: `encoder.restore()` put the loaded "
                "ones back. Make the model again, or load it with "
                "`tf_adapters.load_adapter` if it was saved."
            )
        if user in self._put_away:
            raise UserError(
                f"Another adapter than `{user.name}` is active. Call "
                f'`set_active("{user.name}")` first.'
            )
        changed = self.changed()
        if not changed:
            return
        if self._changed_by is None and user.trains_encoder:
            # A custom training loop changed the weights without calling `hold`.
            self.hold(user)
            return
        raise UserError(self._message(changed, encoder))

    def check_call(self, user: User, encoder: str) -> None:
        """Calls `check`, but only if the user cannot be the current one.

        This is so if another user has called `hold`, or if `restore` removed
        what this user trained. `check` compares all weights, which can take
        longer than a call.
        """
        if self._changed_by not in (None, user) or user in self._restored:
            self.check(user, encoder)

    def check_unchanged(self, encoder: str) -> None:
        """Raises a `UserError` if a model has changed the weights."""
        changed = self.changed()
        if changed:
            raise UserError(self._message(changed, encoder))

    def _message(self, changed: list[str], encoder: str) -> str:
        by = self._changed_by
        if by is not None and by.is_folded:
            return (
                f"The weights of the model `{by.name}` are folded into encoder "
                f"`{encoder}`. Call `unfold()` of that model first, or load a "
                "fresh encoder with `tf_adapters.load_encoder`."
            )
        who = f"the model `{by.name}`" if by else "another model"
        return (
            f"Encoder `{encoder}` no longer has the weights it was loaded "
            f"with: {who} has changed {len(changed)} of them, for example "
            f"`{changed[0]}`. Load a fresh encoder with "
            "`tf_adapters.load_encoder`, or call `encoder.restore()`, after "
            "which the model that changed them cannot be used any more."
        )

    def switch_to(self, user: User, encoder: str) -> None:
        """Makes a user the current one, and assigns its values to the weights.

        Weights that the user did not train get their original values. The
        values of the previous user are stored until that user becomes the
        current one again.

        Raises:
            UserError: If the weights were changed by an unknown user, or if the
                user's values were lost.
        """
        before = self._changed_by
        if before is user:
            return
        if before is None:
            self.check(user, encoder)
            self.hold(user)
            return
        if user in self._restored:
            self.check(user, encoder)
        changed = self.changed()
        self._put_away[before] = {
            path: np.array(self._loaded[path][0].numpy()) for path in changed
        }
        self._assign_loaded(changed)
        for path, value in self._put_away.pop(user, {}).items():
            self._loaded[path][0].assign(value)
        self.hold(user)

    def _assign_loaded(self, paths: Iterable[str]) -> None:
        for path in paths:
            variable, value = self._loaded[path]
            variable.assign(value)

    def restore(self, encoder: str) -> None:
        """Resets all weights to their original values.

        Args:
            encoder: The encoder's name, for messages.

        Raises:
            UserError: If the original values are unknown, or a model is folded,
                which `unfold` undoes.
        """
        if self.is_of_file:
            raise UserError(
                "This encoder comes from a .keras file, which holds the "
                "trained weights only, so the weights before training cannot "
                "be restored. Load a fresh one with "
                "`tf_adapters.load_encoder`."
            )
        changed = self.changed()
        if not changed:
            return
        by = self._changed_by
        if by is not None and by.is_folded:
            raise UserError(self._message(changed, encoder))
        self._assign_loaded(changed)
        # A custom training loop does not record which model it trained.
        self._restored.update([by] if by else self._trainers)
        self._changed_by = None


# Keyed by backbone, since several `Encoder`s can share a backbone's weights.
_OF_BACKBONE = weakref.WeakKeyDictionary()


def loaded_weights(backbone: keras_hub.models.Backbone) -> LoadedWeights:
    """Returns the `LoadedWeights` of a KerasHub backbone."""
    return _OF_BACKBONE.setdefault(backbone, LoadedWeights())


def hash_of_weights(
    backbone: keras_hub.models.Backbone,
    settings: tuple[Any, ...],
    values: dict[str, np.ndarray],
) -> str:
    """Returns a hexadecimal SHA-256 of settings and weights.

    Args:
        backbone: KerasHub backbone.
        settings: Plain values to include in the hash.
        values: Dict from the path of a weight to an array that is hashed
            instead of the weight's current value.
    """
    digest = hashlib.sha256()
    digest.update(repr(settings).encode())
    weights = {weight.path: weight for weight in backbone.weights}
    for path in sorted(weights):
        value = values[path] if path in values else weights[path].numpy()
        # In float32, so that the hash is the same under all dtype policies with
        # float32 variables.
        value = np.ascontiguousarray(value, dtype="<f4")
        digest.update(f"{path} {value.shape}".encode())
        digest.update(value.data)
    return digest.hexdigest()
