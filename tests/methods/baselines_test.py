"""Tests which part of the encoder a baseline trains."""

from tests import tiny
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.models.adapter_model import adapt


def test_top_layers_are_the_last_blocks():
    """All blocks have equally many weights, so the count is not enough."""
    head = heads.Classification(("no", "yes"))
    model = adapt(tiny.encoder(), methods.TopLayers(k=1), head)
    trained = {path.partition("/")[0] for path in model.trained_variables()}
    assert trained == {f"transformer_layer_{tiny.BLOCKS - 1}", "head"}


def test_all_layers_are_full_fine_tuning():
    """Houlsby et al. 2019, section 3.3; the embeddings too."""
    trained = [
        set(adapt(tiny.encoder(), method).trained_variables())
        for method in (methods.TopLayers(k=tiny.BLOCKS), methods.Full())
    ]
    assert trained[0] == trained[1]
