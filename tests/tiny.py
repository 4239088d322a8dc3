"""Small random encoders and batches for tests."""

import keras
import keras_hub
import numpy as np

from tf_adapters.encoders import modernbert
from tf_adapters.encoders import mpnet
from tf_adapters.encoders.encoder import Encoder

BLOCKS, WIDTH, FFN_WIDTH, VOCABULARY = 2, 16, 32, 50

_SIZES = {
    "num_heads": 4,
    "hidden_dim": WIDTH,
    "intermediate_dim": FFN_WIDTH,
    "max_sequence_length": 32,
}
# Family: backbone, its name for the vocabulary's size, activation, epsilon.
FAMILIES = {
    "bert": ("BertBackbone", "vocabulary_size", "gelu_tanh", 1e-12),
    "roberta": ("RobertaBackbone", "vocabulary_size", "gelu", 1e-5),
    "xlm_roberta": ("XLMRobertaBackbone", "vocabulary_size", "gelu", 1e-5),
    "distilbert": ("DistilBertBackbone", "vocabulary_size", "gelu", 1e-12),
    "electra": ("ElectraBackbone", "vocab_size", "gelu_tanh", 1e-12),
    "mpnet": ("MPNetBackbone", "vocabulary_size", "gelu", 1e-5),
    "deberta": ("DebertaV3Backbone", "vocabulary_size", "gelu", 1e-7),
    "albert": ("AlbertBackbone", "vocabulary_size", "gelu_tanh", 1e-12),
    "modernbert": ("ModernBertBackbone", "vocabulary_size", "gelu", 1e-5),
}


def encoder(
    family="bert", dropout=0.0, dtype="float32", seed=0, num_blocks=BLOCKS
):
    """Returns an `Encoder` with random weights, biases and norms too."""
    class_name, vocabulary, activation, epsilon = FAMILIES[family]
    sizes = {**_SIZES, "num_layers": num_blocks, vocabulary: VOCABULARY}
    if family == "deberta":
        sizes["bucket_size"] = 4
    if family in ("electra", "albert"):
        sizes["embedding_dim"] = WIDTH // 2
    if family == "modernbert":
        # One global block, one local block; windows of three tokens.
        sizes |= {"global_every": 2, "local_attention": 2}
    backbone = _class_of(class_name)(**sizes, dtype=dtype)
    generator = np.random.default_rng(seed)
    for weight in backbone.weights:
        noise = generator.normal(0, 0.3, weight.shape)
        weight.assign(noise + (weight.name == "gamma"))
    return Encoder(
        name=f"tiny_{family}",
        backbone=backbone,
        activation=activation,
        layer_norm_epsilon=epsilon,
        hidden_dropout=dropout,
        attention_dropout=dropout,
        has_pooler=family in ("bert", "electra", "mpnet", "albert"),
    )


def _class_of(name):
    for module in (keras_hub.models, mpnet, modernbert):
        if hasattr(module, name):
            return getattr(module, name)
    raise ValueError(name)


def batch(encoder, size=3, tokens=7, seed=0):
    """Returns a dict of inputs with rows of unequal length."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(3, tokens + 1, size)
    lengths[0] = tokens
    mask = np.arange(tokens) < lengths[:, None]
    ids = generator.integers(1, VOCABULARY, (size, tokens)) * mask
    features = {"token_ids": ids, "padding_mask": mask}
    if "segment_ids" in {tensor.name for tensor in encoder.backbone.inputs}:
        features["segment_ids"] = mask & (np.arange(tokens) >= 3)
    return {name: value.astype("int32") for name, value in features.items()}


def randomize(variables, scale=0.3, seed=1):
    """Gives variables weights large enough that each of them matters."""
    generator = np.random.default_rng(seed)
    for variable in variables:
        variable.assign(generator.normal(0, scale, variable.shape))


def values(variables):
    """Returns copies of variables as NumPy arrays."""
    return [keras.ops.convert_to_numpy(v).copy() for v in variables]
