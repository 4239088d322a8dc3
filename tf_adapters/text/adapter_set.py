"""Several adapters on one encoder, with one active at a time."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from tf_adapters import methods
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.encoders.loaded_weights import User
from tf_adapters.models.adapter_model import AdapterModel

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Iterator

    from tf_adapters.encoders.encoder import Encoder


# Name of the active model within `disabled`. This model has no adapter.
DISABLED = "disabled"


def check_name(name: str) -> None:
    """Raises a `UserError` if an adapter cannot have this name."""
    is_name = isinstance(name, str) and name and "/" not in name
    if not is_name or name == DISABLED:
        raise UserError(
            "Give the adapter a name: text without a slash, and not "
            f'"{DISABLED}", which stands for the model without an adapter. '
            f"Received: {shown(name)}"
        )


class AdapterSet:
    """Holds several adapters on one encoder, one of which is active.

    If an adapter trained weights of the encoder (norms, biases), these weights
    are in the encoder while the adapter is active. Otherwise, they are stored
    separately.

    Args:
        model: `AdapterModel` of the first adapter, which becomes active. Its
            name is the adapter's name.

    Attributes:
        models: Dict from name to `AdapterModel`.
        active: Name of the active adapter.
        text_fields: Dict from the name of an adapter to the names of the texts
            that it reads, or to `None` if it read none yet.
        presets: Dict from the name of an adapter to the name of its method's
            preset. Without adapters whose method was not given by name.
    """

    def __init__(self, model: AdapterModel) -> None:
        check_name(model.name)
        self.models = {model.name: model}
        self.active = model.name
        self.text_fields: dict[str, tuple[str, ...] | None] = {}
        self.presets: dict[str, str] = {}
        self._nobody = User("encoder", trains_encoder=False)

    @property
    def model(self) -> AdapterModel:
        """The `AdapterModel` of the active adapter."""
        return self.models[self.active]

    @property
    def encoder(self) -> Encoder:
        """The `Encoder` that all adapters share."""
        return self.model.encoder_info

    @contextlib.contextmanager
    def added(
        self, name: str, make: Callable[[], AdapterModel]
    ) -> Iterator[None]:
        """Adds an adapter, and makes it active before the `with` block.

        If the block fails or is interrupted, the adapter is removed again.

        Args:
            name: Name of the adapter.
            make: Function that returns the adapter's `AdapterModel`. It is
                called while the encoder has its original weights.

        Raises:
            UserError: If the name is taken or not allowed.
        """
        check_name(name)
        if name in self.models:
            raise UserError(
                f"There is an adapter `{name}` already. The adapters are "
                f"{', '.join(self.models)}."
            )
        before = self.active
        self._lend(self._nobody)
        try:
            self.models[name] = make()
            self.activate(name)
            yield
        except BaseException:
            self.activate(before)
            self.models.pop(name, None)
            self.text_fields.pop(name, None)
            self.presets.pop(name, None)
            raise

    def activate(self, name: str) -> None:
        """Makes an adapter active.

        Raises:
            UserError: If there is no adapter of this name.
        """
        if name not in self.models:
            raise UserError(
                f"There is no adapter `{name}`. The adapters are "
                f"{', '.join(self.models)}."
            )
        self._lend(self.models[name].encoder_user)
        self.active = name

    def _lend(self, user: User) -> None:
        self.encoder.loaded.switch_to(user, self.encoder.name)

    def check_enabled(self, deed: str) -> None:
        """Raises a `UserError` within a `disabled` block.

        Args:
            deed: What the caller does, in the imperative, such as `"Train"`.
        """
        if self.active == DISABLED:
            raise UserError(
                f"The adapter is disabled here. {deed} after the `with "
                "model.disabled()` block."
            )

    @contextlib.contextmanager
    def disabled(self) -> Iterator[None]:
        """Disables the active adapter within a `with` block.

        A model without an adapter is active instead. Its encoder has the
        original weights. The head and its weights are those of the adapter that
        was active before. Within another such block, nothing changes.
        """
        if self.active == DISABLED:
            yield
            return
        active = self.model
        self._lend(self._nobody)
        plain = AdapterModel(
            self.encoder, methods.HeadOnly(), active.head, name=DISABLED
        )
        for variable, trained in zip(
            plain.head_layer.weights, active.head_layer.weights, strict=True
        ):
            variable.assign(trained)
        self.models[DISABLED] = plain
        self.text_fields[DISABLED] = self.text_fields.get(active.name)
        self.active = DISABLED
        try:
            yield
        finally:
            # An inner block may have removed them.
            self.models.pop(DISABLED, None)
            self.text_fields.pop(DISABLED, None)
            self.active = active.name
            self._lend(active.encoder_user)
