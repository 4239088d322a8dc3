"""Writes adapters of random weights, and computes what each answers alone."""

import json

from bank_speed import make_models
import numpy as np

WORDS = "the film is a fine story of good people who never give up".split()


def make_texts(tokens, number=8):
    """Returns texts of so many tokens; each word is one token."""
    generator = np.random.default_rng(0)
    words = [generator.choice(WORDS, tokens - 2) for _ in range(number)]
    return [" ".join(row) for row in words]


def write(folder, kinds, number, texts, also=None):
    """Writes adapters, and returns the answers of each when it is alone.

    Args:
        folder: Path. `runs/adapter_0` and so on are written into it.
        kinds: List of names of methods, which take turns.
        number: Number of adapters.
        texts: List of texts.
        also: Function that is called with the name of each adapter, its model
            and its packer, to write it in another format. Default: none.

    Returns:
        Dict from the name of an adapter to a list with the probability of the
        first class of each text.
    """
    import tf_adapters

    encoder, tokenizer = tf_adapters.load_encoder("minilm")
    packer = tf_adapters.TextPacker(tokenizer, max_length=128)
    features, answers = packer(texts), {}
    generator = np.random.default_rng(0)
    for place, kind in enumerate(kinds):
        (model,) = make_models(encoder, [kind])
        config, shapes = _first(model, folder / "first" / kind)
        variables, call = model.trained_variables(), _graph_of(model)
        for index in range(place, number, len(kinds)):
            tensors = {
                name: x + 0.1 * generator.normal(size=x.shape).astype(x.dtype)
                for name, x in shapes.items()
            }
            name = f"adapter_{index}"
            _write_one(folder / "runs" / name, config, tensors)
            for key, value in tensors.items():
                variables[key].assign(value)
            logits = np.asarray(call(features), "float64")
            answers[name] = 1 / (1 + np.exp(logits[:, 1] - logits[:, 0]))
            if also is not None:
                also(name, model, packer)
        encoder.restore()
    return {name: values.tolist() for name, values in answers.items()}


def _first(model, folder):
    """Returns the configuration and the tensors of a model's folder."""
    from safetensors.numpy import load_file

    import tf_adapters

    tf_adapters.save_adapter(model, folder, {"max_length": 128})
    config = json.loads((folder / "adapter_config.json").read_text())
    del config["weights_sha256"]  # The weights of the others differ.
    return config, load_file(folder / "adapter.safetensors")


def _write_one(folder, config, tensors):
    from safetensors.numpy import save_file

    folder.mkdir(parents=True)
    (folder / "adapter_config.json").write_text(json.dumps(config))
    save_file(tensors, folder / "adapter.safetensors")


def _graph_of(model):
    """Returns a graph of a model that reads its variables when it is called."""
    import tensorflow as tf

    return tf.function(lambda inputs: model(inputs, training=False))
