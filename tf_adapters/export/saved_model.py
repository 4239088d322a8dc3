"""An adapted model as a SavedModel that needs neither Keras nor this library.

What is saved is a plain `tf.Module`: two traced functions, the variables that
they read, once, and the tables of the tokenizer. It loads wherever TensorFlow
and the operations of tensorflow_text are, TensorFlow Serving among them.
"""

import dataclasses
import json
import logging
from pathlib import Path
import re
import shutil

import tensorflow as tf

from tf_adapters.data import splits
from tf_adapters.data.packing import TextPacker
from tf_adapters.export import serving

TEXT_SIGNATURE = "serving_default"
TOKEN_SIGNATURE = "token_ids"
DESCRIPTION_FILE = "model.json"
_LOGGER = logging.getLogger(__name__)


def export_run(config, model_dir):
    """Exports the adapter of a run, whatever strategy trained it.

    Args:
        config: `Config` of the run.
        model_dir: The run's folder.

    Returns:
        Path of the SavedModel, `<model_dir>/export/<task>/<version>`.
    """
    # Imported here: library users export without the training code.
    from tf_adapters.training import experiment

    # The class names come from the adapter, so no data is needed.
    task = splits.declared_task(config)
    run = experiment.Experiment(
        dataclasses.replace(config, distribution_strategy="one_device"),
        task,
        Path(model_dir) / "adapter",
    )
    export_folder = Path(model_dir) / "export"
    folder = export_model(
        run.model, run.packer, task, export_folder / task.name
    )
    serving.write_models_config(export_folder)
    return folder


def export_model(model, packer, task, folder):
    """Writes the next version of a model in TensorFlow Serving's layout.

    The signature `serving_default` takes a string tensor `(batch,)` for each
    of the task's text fields, named as in `input_names`, and has the tokenizer
    inside; `token_ids` takes what the packer makes, of any batch and length.
    Both answer `label` (string), `label_id` (int32) and `probabilities`
    (float32, `(batch, classes)`), or for regression `score` (float32). Where
    the tokenizer cannot run in a graph, `serving_default` takes token ids as
    well, and a warning says so.

    Args:
        model: `AdapterModel` with a head.
        packer: `TextPacker` as in training: it decides where texts are cut.
        task: `Task`; its name and text fields are used.
        folder: Path `<somewhere>/<name>`. The model is served as `<name>`.

    Returns:
        Path of the version's folder, `<folder>/<version>`.

    Raises:
        ValueError: If the model has no head.
    """
    if model.head is None:
        raise ValueError(
            "Only a model with a head can be exported: what it answers is the "
            "head's. Received: a model with head=None. Pass a head to `adapt`."
        )
    folder = Path(folder)
    partial, version = next_version(folder)
    # What is served computes with the final weights, not from their parts.
    with model.reparameterization.merged_meanwhile():
        module, signatures = _trace(model, packer, task.text_fields)
        tf.saved_model.save(
            module,
            str(partial),
            signatures,
            tf.saved_model.SaveOptions(experimental_custom_gradients=False),
        )
    serving.write_warmup(
        partial, _warmup_requests(folder.name, signatures, packer, task)
    )
    _describe(partial, model, packer, task, signatures)
    partial.rename(version)
    return version


def next_version(folder):
    """Returns where to write a model's next version, and where to move it.

    The server takes no notice of a name that is not a number, so it never sees
    half a model.
    """
    folder = Path(folder)
    number = max(serving.versions(folder), default=0) + 1
    partial = folder / f".{number}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    return partial, folder / str(number)


def input_names(text_fields):
    """Returns the names of the inputs of `serving_default`.

    They are the text fields, or `text_1`, `text_2` where one of the fields
    cannot name an input of a graph ("my text", "1st").
    """
    are_names = all(
        re.fullmatch(r"(?!self$)[A-Za-z][A-Za-z0-9_]*", field)
        for field in text_fields
    )
    # The names of a graph's nodes do not differ by case alone.
    if are_names and len({field.lower() for field in text_fields}) == len(
        text_fields
    ):
        return tuple(text_fields)
    return ("text_1", "text_2")[: len(text_fields)]


def _trace(model, packer, text_fields):
    """Returns the module to save, and its signatures by name."""
    module = tf.Module()
    token_function = _token_function(model)
    graph_packer = in_graph(packer)
    if graph_packer is None:
        _LOGGER.warning(
            "The encoder's tokenizer cannot run inside a SavedModel: the "
            "export takes token ids only, in both signatures. Tokenise with "
            "`TextPacker` before calling it."
        )
        text_function = token_function
    else:
        text_function = _text_function(model, graph_packer, text_fields)
        module.tokenizer = resources(graph_packer.tokenizer)
    signatures = {
        TEXT_SIGNATURE: text_function,
        TOKEN_SIGNATURE: token_function,
    }
    # By identity: both functions read the same variables.
    module.weights = list(
        {
            id(variable): variable
            for function in signatures.values()
            for variable in function.variables
        }.values()
    )
    return module, signatures


def _text_function(model, packer, text_fields):
    @tf.function(autograph=False)
    def from_texts(*texts):
        return _answer(model.head, model(packer(*texts), training=False))

    return from_texts.get_concrete_function(
        *(
            tf.TensorSpec([None], tf.string, name)
            for name in input_names(text_fields)
        )
    )


def _token_function(model):
    names = ["token_ids", "padding_mask"]
    backbone = model.encoder_info.backbone
    if "segment_ids" in {tensor.name for tensor in backbone.inputs}:
        names.append("segment_ids")

    @tf.function(autograph=False)
    def from_tokens(*inputs):
        features = dict(zip(names, inputs, strict=True))
        return _answer(model.head, model(features, training=False))

    return from_tokens.get_concrete_function(
        *(tf.TensorSpec([None, None], tf.int32, name) for name in names)
    )


def _answer(head, outputs):
    """Returns what a client gets, from the head's outputs."""
    outputs = tf.cast(outputs, tf.float32)
    labels = getattr(head, "labels", None)
    if labels is None:
        return {"score": outputs[:, 0]}
    label_ids = tf.argmax(outputs, axis=-1, output_type=tf.int32)
    return {
        "label": tf.gather(tf.constant(labels), label_ids),
        "label_id": label_ids,
        "probabilities": tf.nn.softmax(outputs),
    }


def in_graph(packer):
    """Returns a packer that works in a graph, or `None`."""
    if not hasattr(packer.tokenizer, "in_graph"):
        return packer
    tokenizer = packer.tokenizer.in_graph()
    if tokenizer is None:
        return None
    graph_packer = TextPacker(tokenizer, packer.max_length)
    # Its class says which special tokens are usual, the original which are
    # used.
    graph_packer.frame = packer.frame
    return graph_packer


def resources(tokenizer):
    """Returns the tables that a KerasHub tokenizer looks things up in.

    Keras does not track them, and a SavedModel holds only what is tracked.
    """
    return [
        value
        for value in vars(tokenizer).values()
        if isinstance(value, tf.__internal__.tracking.Trackable)
    ]


def _warmup_requests(name, signatures, packer, task):
    """Returns requests of one text and of several, short and cut."""
    texts = ["", "A short text.", "A longer text, cut. " * packer.max_length]
    requests = []
    names = input_names(task.text_fields)
    for batch in (texts[1:2], texts):
        features = packer(*[batch] * len(names))
        inputs = {**features, **dict.fromkeys(names, batch)}
        requests += [
            serving.predict_request(
                name,
                signature_name,
                {key: inputs[key] for key in _inputs(function)},
            )
            for signature_name, function in signatures.items()
        ]
    return requests


def _inputs(function):
    specs, _ = function.structured_input_signature
    return [spec.name for spec in specs]


def _describe(folder, model, packer, task, signatures):
    """Writes what a client may want to know beside the SavedModel."""
    description = {
        "task": task.name,
        "labels": list(getattr(model.head, "labels", ())),
        "max_length": packer.max_length,
        "encoder": model.encoder_info.name,
        "encoder_fingerprint": model.fingerprint,
        "signatures": {
            name: {
                "inputs": _inputs(function),
                "outputs": sorted(function.structured_outputs),
            }
            for name, function in signatures.items()
        },
    }
    path = folder / serving.EXTRA_FOLDER / DESCRIPTION_FILE
    path.write_text(
        json.dumps(description, indent=2, ensure_ascii=False) + "\n",
        encoding="utf-8",
    )
