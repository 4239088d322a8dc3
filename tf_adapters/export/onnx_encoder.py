"""Exports an encoder as an ONNX file whose inputs include an adapter's weights.

The inputs have the names of the tensors in an adapter folder. To use another
adapter of the same method, feed its tensors to the same file.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
import shutil
from typing import TYPE_CHECKING

import keras
from keras import ops
import numpy as np
import tensorflow as tf

from tf_adapters import methods
from tf_adapters.common import own_files
from tf_adapters.common.errors import AdapterError
from tf_adapters.export import check_texts
from tf_adapters.export import encoder_folder
from tf_adapters.export import onnx_file
from tf_adapters.export import parity
from tf_adapters.export import token_outputs
from tf_adapters.export import tokenizer_file
from tf_adapters.export.check_texts import CheckTexts
from tf_adapters.export.replaced_folder import replaced_folder

if TYPE_CHECKING:
    from collections.abc import Callable
    import os

    import onnx

    from tf_adapters.common.types import Tensor
    from tf_adapters.config.settings import Config
    from tf_adapters.data.tokens.packer import Packer
    from tf_adapters.models.adapter_model import AdapterModel

FILE = "encoder.onnx"
# Settings in which adapters may differ if their method is a bottleneck: a
# narrower adapter is filled up with zeros, which does not change its outputs.
_WIDTHS = ("units", "reduction_factor")
_HEAD = ("head/kernel", "head/bias")


def export_run(config: Config, model_dir: str | os.PathLike[str]) -> Path:
    """Exports the encoder of a run, with the run's adapter as the default.

    Args:
        config: `Config` of the run. Its distribution strategy and its precision
            are ignored.
        model_dir: Path of the run folder.

    Returns:
        Path of the folder, `<model_dir>/onnx_encoder/<task>`. An existing
        folder is replaced.
    """
    # Imported here, so that library users can export without training code.
    from tf_adapters.runs import finished_run

    train = dataclasses.replace(config.train, precision="float32")
    config = dataclasses.replace(config, train=train)
    run = finished_run.load_to_export(config, model_dir)
    folder = own_files.make_folder(model_dir, "onnx_encoder") / run.task.name
    texts = check_texts.texts_of_run(config)
    return export_onnx_encoder(run.model, run.packer, folder, texts)


def export_onnx_encoder(
    model: AdapterModel,
    packer: Packer,
    folder: str | os.PathLike[str],
    texts: CheckTexts | None = None,
) -> Path:
    """Writes an encoder as an ONNX file that takes an adapter's weights.

    The inputs are the packer's features, int32, with any batch size and length,
    and the tensors of an adapter folder, under their names in the folder. The
    tensors are optional: their defaults are the weights of `model`. The output
    is `logits`. For a regression, it holds the predicted number. The head of
    another adapter may have any number of outputs. Its bottlenecks may have at
    most as many units as those of `model`; pad narrower ones with zeros.

    Args:
        model: `AdapterModel` in float32, with a head of one linear layer.
        packer: `TextPacker` as in training.
        folder: Path of the folder to write. An earlier export is replaced.
        texts: `CheckTexts` to compare file and model on. Default: built-in
            sentences.

    Returns:
        Path of the folder.

    Raises:
        UserError: If the model has no head, the packer makes longer inputs than
            the encoder has positions for, or a library of the extra `export` is
            not installed. Also if another model has changed the encoder, or
            it computes in half precision.
        AdapterError: If the adapter cannot be an input, ONNX lacks an operation
            of the model, or the file's outputs differ from the model's by more
            than 1e-4.
    """
    token_outputs.check_model(model, packer, "export_onnx_encoder")
    weights = _weights(model)
    with replaced_folder(folder, FILE, "ONNX file") as new:
        content = onnx_file.convert(
            _graph(model, list(weights)), _facts(model, packer)
        )
        _name_weights(content, weights)
        (new / FILE).write_bytes(content.SerializeToString())
        run = _answering(onnx_file.runner(new / FILE), model)
        batches = (texts or CheckTexts()).checked(model, packer)
        parity.check(run, model, batches, "ONNX file")
        encoder = encoder_folder.folder_of(model.encoder_info)
        if tokenizer_file.write(packer, new, encoder):
            program = Path(__file__).with_name("run_onnx_encoder.py")
            shutil.copyfile(program, new / "run.py")
    return Path(folder)


def _weights(model: AdapterModel) -> dict[str, np.ndarray]:
    """Returns the tensors of the adapter folder, as a dict from name to array.

    Raises:
        AdapterError: If these tensors are not exactly the weights that the
            model computes with, or if the head is not linear.
    """
    weights = {
        name: ops.convert_to_numpy(variable)
        for name, variable in model.trained_variables().items()
    }
    stored = model.method.gating.pack(weights)
    is_computed = bool(model.reparameterization.computed())
    reads_others = bool(model.method.adapters or model.below)
    if stored.keys() != weights.keys() or is_computed or reads_others:
        raise AdapterError(
            f"An adapter of `{methods.name_of(model.method)}` cannot be an "
            "input of the encoder's ONNX file: its stored weights are not the "
            "ones that the model computes with, or it reads other adapters. "
            "Export the whole model with --format=onnx."
        )
    if not model.head.is_linear or model.head.signature != "text":
        raise AdapterError(
            "The encoder's ONNX file takes the adapters of heads with one "
            "linear layer on one vector of a text (classes, several labels, "
            f"numbers). Received: {model.head!r:.100}. Export the whole model "
            "with --format=onnx."
        )
    return weights


def _graph(
    model: AdapterModel, names: list[str]
) -> tf.types.experimental.PolymorphicFunction:
    """Returns a `tf.function` whose inputs are the features and the weights.

    The weights named in `names` are the last inputs, in this order.
    """
    variables = [model.trained_variables()[name] for name in names]
    shapes = model.feature_shapes()

    def from_tokens(*inputs: Tensor) -> dict[str, Tensor]:
        named = dict(zip(shapes, inputs[: len(shapes)], strict=True))
        features = token_outputs.of_equal_shape(named)
        given = zip(variables, inputs[len(shapes) :], strict=True)
        with keras.StatelessScope(state_mapping=list(given)):
            return {"logits": model(features, training=False)}

    specs = [
        *(tf.TensorSpec(s, tf.int32, name) for name, s in shapes.items()),
        *(
            tf.TensorSpec(v.shape, tf.float32, _given_name(index))
            for index, v in enumerate(variables)
        ),
    ]
    return tf.function(from_tokens, autograph=False, input_signature=specs)


def _given_name(index: int) -> str:
    """Returns a name for a weight in the graph, where slashes are not allowed.

    `index` is the position of the weight among all weights.
    """
    return f"weight_{index}"


def _name_weights(
    content: onnx.ModelProto, weights: dict[str, np.ndarray]
) -> None:
    """Gives the inputs for weights the names of tensors in an adapter folder.

    The given weights become the default values of these inputs.
    """
    from onnx import numpy_helper

    names = {_given_name(i): name for i, name in enumerate(weights)}
    graph = content.graph
    for node in graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
    for value in graph.input:
        value.name = names.get(value.name, value.name)
        if value.name in _HEAD:
            value.type.tensor_type.shape.dim[-1].dim_param = "labels"
    (output,) = graph.output
    output.type.tensor_type.shape.dim[-1].dim_param = "labels"
    graph.initializer.extend(
        numpy_helper.from_array(value, name) for name, value in weights.items()
    )


def _answering(
    run: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]],
    model: AdapterModel,
) -> Callable[[dict[str, np.ndarray]], dict[str, Tensor]]:
    """Returns a function that computes a file's logits and the head's answers.

    `run` computes the logits from a dict of features. `model` has the head.
    """

    def run_and_answer(features: dict[str, np.ndarray]) -> dict[str, Tensor]:
        logits = run(features)["logits"]
        answer = model.head.answer(ops.convert_to_tensor(logits))
        return {"logits": logits, "outputs": logits, **answer}

    return run_and_answer


def _facts(model: AdapterModel, packer: Packer) -> dict[str, str]:
    """Returns the metadata of the file as a dict from name to string.

    The metadata include the settings that all adapters for the file must share.
    """
    method = methods.to_config(model.method)
    free = _WIDTHS if model.method.stacks_as else ()
    shared = {k: v for k, v in method.items() if k not in free}
    return {
        "method": json.dumps(shared),
        "reads": model.head.reads,
        "left_out": json.dumps(list(model.left_out)),
        "quantization": model.encoder_info.quantization or "",
        **token_outputs.input_facts(model.encoder_info, packer),
    }
