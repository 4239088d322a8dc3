"""Makes the parts of a text model: method, head and adapters."""

from __future__ import annotations

import contextlib
import dataclasses
import numbers
import random
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown
from tf_adapters.config import presets
from tf_adapters.config import resolve
from tf_adapters.heads.regression import MEAN
from tf_adapters.heads.windows import check_pools_windows
from tf_adapters.interop import stored_adapter
from tf_adapters.models import model_checks
from tf_adapters.models import saving
from tf_adapters.models.adapter_model import AdapterModel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Sequence
    import os

    from tf_adapters.encoders.encoder import Encoder
    from tf_adapters.interop.stored_adapter import StoredAdapter


def as_method(method: methods.Method | str) -> methods.Method:
    """Converts the name of a preset to its `Method`.

    A `Method` is returned unchanged.
    """
    if isinstance(method, str):
        return as_method(resolve.method_of_preset(method))
    if isinstance(method, methods.Fusion):
        raise UserError(
            "A fusion needs trained adapters. Make its model with "
            "`tf_adapters.fuse`, or train it with `tf-adapters train "
            "--method=fusion --adapters=...`."
        )
    return method


def as_head(
    head: heads.Head | str | None,
    labels: Sequence[str] | None,
    windows: int | None = None,
) -> heads.Head:
    """Makes the head of a text model from the user's arguments.

    Args:
        head: A head, the name of a head that needs no settings, or `None`.
        labels: Class names, or `None`.
        windows: Maximum number of windows per text, or `None` (default) for the
            head's own setting.

    Raises:
        UserError: If both or neither of `head` and `labels` are given, or if
            `windows` is given but the head does not support windows.
    """
    head = _head_of(head, labels)
    if windows is None:
        return head
    check_pools_windows(head, heads.name_of(head))
    return dataclasses.replace(head, windows=windows)


def _head_of(
    head: heads.Head | str | None, labels: Sequence[str] | None
) -> heads.Head:
    if labels is not None and head is not None:
        raise UserError(
            "Pass `labels`, which is short for heads.Classification(labels), "
            "or `head`, not both."
        )
    if labels is not None:
        names: Any = labels  # The head checks and converts them.
        return heads.Classification(names)
    if isinstance(head, str):
        start = {"initial_bias": MEAN} if head == "regression" else {}
        return heads.from_config({"name": head, **start})
    if head is None:
        raise UserError(
            "A text model needs the names of its classes, "
            '`labels=("negative", "positive")`, or a head, for example '
            '`head="regression"` or `tf_adapters.heads.Tagging(tags)`.'
        )
    return head


def as_source(
    adapter: methods.Method | str | os.PathLike[str],
) -> methods.Method | StoredAdapter:
    """Returns the `Method` of a new adapter, or a `StoredAdapter`.

    Args:
        adapter: See `TextModel.add_adapter`.
    """
    if isinstance(adapter, str) and adapter in presets.preset_names():
        return as_method(adapter)
    if isinstance(adapter, methods.Method):
        return as_method(adapter)
    return stored_adapter.find_stored(adapter)


def check_loads(**options: Any) -> None:
    """Raises a `UserError` if an option for loading an encoder is given."""
    for name, value in options.items():
        if value is not None:
            raise UserError(
                "The encoder is loaded already, so its type is fixed. Pass "
                f"`{name}={value!r}` to `load_encoder`."
            )


def check_no_tokenizer(tokenizer: Any) -> None:
    """Raises a `UserError` if a tokenizer is given for an encoder's name."""
    if tokenizer is not None:
        raise UserError(
            "An encoder that is loaded by its name brings its tokenizer. Leave "
            "`tokenizer` out, or pass a loaded encoder with it: `encoder, "
            "tokenizer = tf_adapters.load_encoder(name)`. Received: "
            f"tokenizer={shown(tokenizer)}"
        )


def make_adapter(
    encoder: Encoder,
    name: str,
    source: methods.Method | StoredAdapter,
    labels: Sequence[str] | None,
    head: heads.Head | str | None,
    seed: int,
    use_encoder_dropout: bool,
) -> AdapterModel:
    """Makes or loads an adapter that is added to a text model.

    Returns its `AdapterModel`.

    Args:
        encoder: `Encoder` of the text model.
        name: Name of the adapter.
        source: Return value of `as_source`.
        labels: See `TextModel.add_adapter`.
        head: See `TextModel.add_adapter`.
        seed: Integer that seeds the weights of a new adapter.
        use_encoder_dropout: See `AdapterModel`.

    Raises:
        UserError: If a stored adapter is given labels or a head, or has no
            head.
    """
    options = {"use_encoder_dropout": use_encoder_dropout, "name": name}
    if not isinstance(source, methods.Method):
        if labels is not None or head is not None:
            raise UserError(
                "A stored adapter has its own labels and head. Leave `labels` "
                "and `head` out, or give a method to train a new adapter."
            )
        return load_with_head(source, encoder, seed=seed, **options)
    head = as_head(head, labels)
    with initial_weights(seed):
        return AdapterModel(encoder, source, head, seed=seed, **options)


def load_with_head(
    stored: StoredAdapter, encoder: Encoder, **options: Any
) -> AdapterModel:
    """Returns the `AdapterModel` of a stored adapter, which must have a head.

    Args:
        stored: `StoredAdapter`.
        encoder: `Encoder`.
        **options: See `AdapterModel`.

    Raises:
        AdapterError: If the adapter has no head. See also `load_adapter`.
    """
    model = saving.load_adapter(stored, encoder, **options)
    if model.head is None:
        raise AdapterError(
            f"The adapter in {cut(stored.source)} was saved without a head, "
            "which makes the answers of a text model. Load it with "
            "`tf_adapters.load_adapter(folder, encoder)` for the encoder's "
            "outputs, or train a head with `train.py --task=... "
            "--init_adapter=folder`."
        )
    return model


def as_seed(seed: int | None) -> int:
    """Returns the seed as a Python integer, or a new one if it is `None`.

    Raises:
        UserError: If it is not an integer in the range of `AdapterModel`.
    """
    if seed is None:
        return random.SystemRandom().getrandbits(31)
    if isinstance(seed, numbers.Integral) and not isinstance(seed, bool):
        seed = int(seed)
    model_checks.check_seed(seed)
    return seed


def check_is_adapter_model(model: Any) -> None:
    """Raises a `UserError` unless a model is an `AdapterModel` with a head."""
    if not isinstance(model, AdapterModel) or model.head is None:
        raise UserError(
            "A text model is made of an `AdapterModel` with a head, as "
            "`adapt(encoder, method, head)` returns it; answers of `Parallel` "
            f"and `BatchSplit` have no single form. Received: {shown(model)}"
        )


@contextlib.contextmanager
def initial_weights(seed: int) -> Iterator[None]:
    """Seeds Keras's initializers within a `with` block.

    `keras.utils.set_random_seed` would also set the seeds of NumPy and
    TensorFlow, which are the user's.
    """
    before = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(before)
