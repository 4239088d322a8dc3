"""Exports an adapted model as a SavedModel.

The SavedModel needs neither Keras nor this library. It is a plain `tf.Module`
with a traced function for each signature, one copy of their variables, and the
tables of the tokenizer. It can be loaded with TensorFlow and the operations of
tensorflow_text, for example in TensorFlow Serving.
"""

from __future__ import annotations

from collections.abc import Sequence
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any
from typing import cast

import filelock
import tensorflow as tf

from tf_adapters.common import own_files
from tf_adapters.common.errors import UserError
from tf_adapters.data.tokens.graph_packer import in_graph
from tf_adapters.data.tokens.packing import TextPacker
from tf_adapters.export import request_checks
from tf_adapters.export import serving
from tf_adapters.export import signatures
from tf_adapters.export.text_fields import checked_fields
from tf_adapters.models.adapter_model import AdapterModel

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.protobuf.message import Message

    from tf_adapters.config.settings import Config

TEXT_SIGNATURE = "serving_default"
TOKEN_SIGNATURE = "token_ids"
# A process that writes a version holds the lock on this file.
_LOCK = ".lock"
_LOGGER = logging.getLogger(__name__)


def export_run(config: Config, model_dir: str | os.PathLike[str]) -> Path:
    """Exports the adapter of a run as a SavedModel.

    Args:
        config: `Config` of the run. Its distribution strategy is ignored.
        model_dir: Path of the run folder.

    Returns:
        Path of the SavedModel, `<model_dir>/export/<task>/<version>`.
    """
    # Imported here, so that library users can export without training code.
    from tf_adapters.runs import finished_run

    run = finished_run.load_to_export(config, model_dir)
    folder = own_files.make_folder(model_dir, "export", run.task.name)
    # `export_model` refuses other packers.
    packer = cast("TextPacker", run.packer)
    version = export_model(run.model, packer, folder, run.task.text_fields)
    serving.write_models_config(folder.parent)
    return version


def export_model(
    model: AdapterModel,
    packer: TextPacker,
    folder: str | os.PathLike[str] | None = None,
    text_fields: str | Sequence[str] = ("text",),
) -> Path:
    """Writes a model as a SavedModel for TensorFlow Serving.

    The signature `serving_default` takes texts and includes the tokenizer. The
    signature `token_ids` takes the packer's features, with any batch size and
    length. Heads that make vectors add the signature `encode`. Inputs and
    outputs depend on the head, see the modules that are listed in `signatures`.
    If the tokenizer cannot run in a graph, `serving_default` takes token ids
    too, there is no `encode`, and a warning is logged.

    Args:
        model: `AdapterModel` with a head.
        packer: `TextPacker` as in training. It decides where texts are cut.
        folder: Path `<parent>/<name>`. The model is served as `<name>`.
        text_fields: Names of the texts that the model reads together, which
            are the inputs of `serving_default`: one, `"text"` or `("text",)`
            (default), or two, such as `("premise", "hypothesis")`. For a
            `Task`, pass its `text_fields`.

    Returns:
        Path of the SavedModel, `<folder>/<version>`, the next version.

    Raises:
        UserError: If the model has no head, an argument has the wrong type, the
            head reads another number of texts, the packer makes longer inputs
            than the encoder has positions for, or another model has changed
            the encoder.

    Examples:
        >>> model = tf_adapters.adapt(encoder, methods.Pfeiffer(), head)
        >>> path = tf_adapters.export_model(model, packer, "models/films")
        >>> serve = tf.saved_model.load(str(path)).signatures["serving_default"]
        >>> tuple(serve(tf.constant(["a fine film"]))["probabilities"].shape)
        (1, 2)
    """
    _check_arguments(model, packer, folder)
    model.check_encoder()
    request_checks.check_packer(packer, model.encoder)
    fields = checked_fields(model.head, text_fields)
    folder = Path(cast("str", folder))
    # Serve the final weights, so that they are not computed at each request.
    with model.reparameterization.folded_meanwhile():
        module, functions = _trace(model, packer, fields)
        kind = signatures.signatures_of_head(model.head)
        inputs = kind.warmup_inputs(packer, fields)
        return write_version(
            folder,
            module,
            functions,
            _warmup_requests(folder.name, functions, inputs),
            _description(folder.name, model, packer, functions),
        )


def _check_arguments(model: object, packer: object, folder: object) -> None:
    call = "`export_model(model, packer, folder)`"
    if not isinstance(model, AdapterModel):
        raise UserError(
            f"Expected as `model` of {call} what `adapt`, `fuse`, `compose` or "
            f"`load_adapter` returns. Received: {model!r:.100}"
        )
    if not isinstance(packer, TextPacker):
        raise UserError(
            f"Expected as `packer` of {call} the one of training, "
            "`tf_adapters.TextPacker(tokenizer, max_length=...)`: it decides "
            f"where texts are cut. Received: {packer!r:.100}"
        )
    if not isinstance(folder, str | Path):
        raise UserError(
            f"Expected as `folder` of {call} a path, such as "
            f"'exports/my_task'. Received: {folder!r:.100}"
        )
    if model.head is None:
        raise UserError(
            "Only a model with a head can be exported, since the head makes "
            "the answers. Received: a model with head=None. Pass a head to "
            "`adapt`."
        )


def write_version(
    folder: str | os.PathLike[str],
    module: tf.Module,
    functions: dict[str, Callable[..., Any]],
    requests: list[Message],
    description: dict[str, Any],
) -> Path:
    """Writes a SavedModel as the next version of a model; returns its path.

    If another process is writing a version, waits until it has finished.

    Args:
        folder: Path `<parent>/<name>`.
        module: `tf.Module` to save.
        functions: Dict from the name of a signature to its function.
        requests: List of `PredictRequest` for the warm-up.
        description: Dict that describes the model to clients.
    """
    # TensorFlow would make the folder too, but without an `OSError` on failure.
    # From an `OSError`, commands report the path.
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    own_files.remove_link(folder / _LOCK)
    with filelock.FileLock(folder / _LOCK):
        partial, version = _next_version(folder)
        options = tf.saved_model.SaveOptions(
            experimental_custom_gradients=False
        )
        tf.saved_model.save(module, str(partial), functions, options)
        serving.write_warmup(partial, requests)
        serving.write_description(partial, description)
        partial.rename(version)
    return version


def _next_version(folder: Path) -> tuple[Path, Path]:
    """Creates a temporary folder for a model's next version.

    The server ignores folders whose name is not a number, so it never sees an
    incomplete model.

    Returns:
        Path of the temporary folder, and the path to move it to when it is
        complete.
    """
    number = max(serving.versions(folder), default=0) + 1
    while os.path.lexists(folder / str(number)):
        number += 1  # Skip names that are taken, by a broken link for example.
    partial = folder / f".{number}.partial"
    own_files.make_new_folder(partial)
    return partial, folder / str(number)


def _trace(
    model: AdapterModel, packer: TextPacker, text_fields: Sequence[str]
) -> tuple[tf.Module, dict[str, tf.types.experimental.ConcreteFunction]]:
    """Returns the module to save, and its functions by signature name."""
    kind = signatures.signatures_of_head(model.head)
    module = tf.Module()
    token_function = kind.token_function(model, packer)
    graph_packer = in_graph(packer)
    text_function, further = token_function, {}
    if not hasattr(kind, "text_function"):
        _LOGGER.warning(
            "%s: the export takes token ids only, in both signatures.",
            kind.NO_TEXTS,
        )
    elif graph_packer is None:
        _LOGGER.warning(
            "The encoder's tokenizer cannot run inside a SavedModel: the "
            "export takes token ids only, in both signatures. Tokenize with "
            "`TextPacker` before calling it."
        )
    else:
        text_function = kind.text_function(model, graph_packer, text_fields)
        if hasattr(kind, "further_functions"):
            further = kind.further_functions(model, graph_packer)
        module.tokenizer = resources(graph_packer.tokenizer)
    functions = {
        TEXT_SIGNATURE: text_function,
        TOKEN_SIGNATURE: token_function,
        **further,
    }
    # Remove duplicates, because all functions read the same variables.
    module.weights = list(
        {
            id(variable): variable
            for function in functions.values()
            for variable in function.variables
        }.values()
    )
    return module, functions


def resources(tokenizer: object) -> list[Any]:
    """Returns the lookup tables of a KerasHub tokenizer.

    Keras does not track them, and a SavedModel stores only tracked objects.
    """
    return [
        value
        for value in vars(tokenizer).values()
        if isinstance(value, tf.__internal__.tracking.Trackable)
    ]


def _warmup_requests(
    name: str,
    functions: dict[str, tf.types.experimental.ConcreteFunction],
    inputs: list[dict[str, Any]],
) -> list[Message]:
    """Returns a warm-up request for each signature and each of `inputs`."""
    return [
        serving.predict_request(
            name,
            signature_name,
            {key: values[key] for key in _inputs(function)},
        )
        for values in inputs
        for signature_name, function in functions.items()
    ]


def _inputs(function: tf.types.experimental.ConcreteFunction) -> list[str]:
    specs, _ = function.structured_input_signature
    return [spec.name for spec in specs]


def _description(
    name: str,
    model: AdapterModel,
    packer: TextPacker,
    functions: dict[str, tf.types.experimental.ConcreteFunction],
) -> dict[str, Any]:
    """Returns the dict that describes the model to clients."""
    return {
        "task": name,
        "labels": list(model.head.labels),
        "max_length": packer.max_length,
        "encoder": model.encoder_info.name,
        "encoder_fingerprint": model.encoder_info.fingerprint,
        "signatures": {
            name: {
                "inputs": _inputs(function),
                "outputs": sorted(function.structured_outputs),
            }
            for name, function in functions.items()
        },
    }
