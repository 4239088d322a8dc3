"""Models of every kind of output, as functions of their signatures."""

import dataclasses
import functools
import tempfile

import onnxruntime
import tensorflow as tf

from tests.export import conftest
from tests.export import head_models
from tf_adapters import methods
from tf_adapters import tasks
from tf_adapters.export import onnx_model
from tf_adapters.export import signatures

KINDS = {
    "classification": tasks.get("wnli"),
    "regression": tasks.get("stsb"),
    "multilabel": dataclasses.replace(
        tasks.get("sst2"), head="multilabel", metrics=("micro_f1",)
    ),
    **head_models.TASKS,
}
# Errors of requests: TensorFlow's, and Python's of a wrong type or name.
REFUSALS = (tf.errors.OpError, TypeError, ValueError)


@functools.cache
def _model(kind):
    method = methods.Houlsby(units=4)
    return head_models.make_model(method, KINDS[kind])


class Signature:
    """A signature of an exported model.

    Attributes:
        kind: Kind of output.
        inputs: Dict from input name to rank.
        takes_texts: Whether it takes strings, and not token features.
        refusals: Tuple of the errors that a request may end with.
    """

    def __init__(self, kind, function):
        self.kind = kind
        specs = function.structured_input_signature[0]
        self.inputs = {spec.name: len(spec.shape) for spec in specs}
        self.takes_texts = specs[0].dtype == tf.string
        self.refusals = REFUSALS
        self._function = function

    def __call__(self, request):
        """Returns the answer to a request, both dicts of arrays."""
        tensors = {k: tf.convert_to_tensor(v) for k, v in request.items()}
        return {k: v.numpy() for k, v in self._function(**tensors).items()}


class OnnxFile:
    """An ONNX file of token features; see `Signature`."""

    takes_texts = False
    # What ONNX Runtime raises has no common class.
    refusals = (Exception,)

    def __init__(self, kind, session):
        self.kind = kind
        self.inputs = {x.name: len(x.shape) for x in session.get_inputs()}
        self._outputs = [x.name for x in session.get_outputs()]
        self._session = session

    def __call__(self, request):
        found = self._session.run(None, request)
        return dict(zip(self._outputs, found, strict=True))


@functools.cache
def signatures_of(kind):
    """Returns a dict from name to `Signature` of a kind of output."""
    model, packer = _model(kind), conftest.make_packer("bert")
    module = signatures.signatures_of_head(model.head)
    functions = {"token_ids": module.token_function(model, packer)}
    if hasattr(module, "text_function"):
        fields = KINDS[kind].text_fields
        functions["serving_default"] = module.text_function(
            model, packer, fields
        )
    if hasattr(module, "further_functions"):
        functions |= module.further_functions(model, packer)
    return {k: Signature(kind, f) for k, f in functions.items()}


@functools.cache
def onnx_file(kind):
    """Returns an `OnnxFile` of a kind of output."""
    folder = f"{tempfile.mkdtemp()}/model"
    packer = conftest.make_packer("bert")
    path = onnx_model.export_onnx(_model(kind), packer, folder)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # Each refused request is an error.
    session = onnxruntime.InferenceSession(path / "model.onnx", options)
    return OnnxFile(kind, session)
