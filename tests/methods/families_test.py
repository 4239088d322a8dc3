"""Each method on the families whose blocks are not quite BERT's."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import tiny
from tests.methods.cases import CASES
from tf_adapters import heads
from tf_adapters.models import saving
from tf_adapters.models.adapter_model import adapt

pytestmark = pytest.mark.integration

FAMILIES = ("mpnet",)
HEAD = heads.Classification(("no", "yes", "maybe"), dropout_rate=0.0)
# One case of each method.
METHODS = {type(m): name for name, (m, _) in reversed(CASES.items())}.values()


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_method_trains_and_its_reload_is_exact(family, name, tmp_path):
    model = adapt(tiny.encoder(family), CASES[name][0], HEAD)
    features = tiny.batch(model.encoder_info)
    trained = model.trained_variables()
    tiny.randomize(v for k, v in trained.items() if "gamma" not in k)
    with tf.GradientTape() as tape:
        outputs = model(features, training=True, seed=[1, 2])
        loss = tf.reduce_sum(model.head.loss(np.array([0, 2, 1]), outputs))
    gradients = tape.gradient(loss, [v.value for v in trained.values()])
    for path, gradient in zip(trained, gradients, strict=True):
        # Closed gates have none. The softmax over keys does not depend on the
        # keys' bias.
        if name != "diff_pruning" and "key/bias" not in path.replace("--", "/"):
            assert np.abs(tf.convert_to_tensor(gradient)).max() > 0, path
    keras.optimizers.SGD(1e-3).apply(gradients, list(trained.values()))
    whole = model.encode(features)["first_token_output"]
    short = model.encode(features, first_token_only=True)
    np.testing.assert_allclose(short["first_token_output"], whole, atol=2e-5)
    saving.save_adapter(model, tmp_path / "adapter")
    again = saving.load_adapter(tmp_path / "adapter", tiny.encoder(family))
    np.testing.assert_array_equal(again(features), model(features))
