"""Makes random adapters on a tiny encoder, for merging."""

import keras
import numpy as np

from tests import tiny
import tf_adapters
from tf_adapters import heads
from tf_adapters import methods

HEAD = heads.Classification(labels=("no", "yes"), dropout_rate=0.0)
METHODS = {
    "houlsby": methods.Houlsby(units=4, train_layer_norms=False),
    "pfeiffer": methods.Pfeiffer(units=4),
    "lora": methods.LoRA(rank=3, alpha=6.0, projections=("query", "ffn_down")),
}


def made(encoder, method, name, seed, head=HEAD):
    """Returns a model in memory whose weights are large."""
    model = tf_adapters.adapt(encoder, method, head, name=name)
    # The encoder's norms stay, because the members share the encoder.
    added = [v for slot in model.all_slots() for v in slot.weights]
    tiny.randomize([*added, *model.head_layer.weights], 0.3, seed)
    return model


def two(method, encoder=None):
    """Returns an encoder and two adapters of it."""
    encoder = encoder or tiny.encoder()
    method = METHODS.get(method, method)
    return encoder, [made(encoder, method, n, i) for i, n in enumerate("ab")]


def tensors(model):
    """Returns a model's trained weights as arrays, by name."""
    return {
        name: keras.ops.convert_to_numpy(variable)
        for name, variable in model.trained_variables().items()
    }


def logits(model):
    """Returns a model's outputs for random texts."""
    return keras.ops.convert_to_numpy(model(tiny.batch(model.encoder_info)))


def copy_with(model, name, change):
    """Returns a copy of a model with changed weights.

    Args:
        model: `AdapterModel`.
        name: Its name.
        change: Function from a weight's name and array to an array.
    """
    copy = tf_adapters.adapt(
        model.encoder_info, model.method, model.head, name=name
    )
    values = tensors(model)
    for key, variable in copy.trained_variables().items():
        variable.assign(change(key, values[key]))
    return copy


def shuffled(model, name, signs=False):
    """Returns the same adapter with its units, or ranks, in another order.

    Args:
        model: `AdapterModel`.
        name: That of the copy.
        signs: Whether to also flip both signs of some of a LoRA's ranks.
    """
    draw = np.random.default_rng(3)
    orders = {}

    def change(key, array):
        slot, _, part = key.rpartition("/")
        if slot == "head" or part == "up_bias":
            return array
        if slot not in orders:
            size = array.shape[-1]
            # No unit stays in its place.
            order = np.roll(np.arange(size), 1 + draw.integers(size - 1))
            turns = draw.choice([-1.0, 1.0], size) if signs else np.ones(size)
            orders[slot] = order, turns
        order, turns = orders[slot]
        axis = 0 if part in ("up_kernel", "down_bias") else 1
        turns = turns[:, None] if part == "up_kernel" else turns
        return np.take(array, order, axis) * turns

    return copy_with(model, name, change)
