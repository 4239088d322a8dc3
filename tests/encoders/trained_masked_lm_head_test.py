"""Tests that a trained head for masked tokens becomes part of a checkpoint."""

from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from benchmarks import masked_lm_head
import tf_adapters
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.encoders.masked_lm_heads import load_masked_lm_head

FOLDER = Path(__file__).parents[1] / "fixtures/one_block/bert"


def test_the_written_checkpoint_has_the_head_and_the_encoder(tmp_path):
    encoder, _ = tf_adapters.load_encoder(FOLDER)
    head = heads.MaskedLM.for_encoder(encoder)
    trained = tf_adapters.adapt(encoder, methods.HeadOnly(), head).head_layer
    generator = np.random.default_rng(0)
    names = ("kernel", "bias", "gamma", "beta", "output_bias")
    tensors = {
        f"head/{name}": generator.normal(
            size=getattr(trained, name).shape
        ).astype("float32")
        for name in names
    }
    save_file(tensors, tmp_path / "adapter.safetensors")
    output = tmp_path / "with_head"
    masked_lm_head.write_checkpoint(FOLDER, tmp_path, output)

    again, _ = tf_adapters.load_encoder(output)
    pairs = zip(
        encoder.backbone.get_weights(),
        again.backbone.get_weights(),
        strict=True,
    )
    assert all(np.array_equal(*pair) for pair in pairs)
    model = tf_adapters.adapt(again, methods.Pfeiffer(), head)
    assert load_masked_lm_head(model, output)
    for name in names:
        loaded = np.asarray(getattr(model.head_layer, name))
        assert np.array_equal(loaded, tensors[f"head/{name}"])


def test_texts_are_drawn_from_training_sets_without_repeats():
    texts = masked_lm_head.texts_of(["demo_entailment"], None, 40)
    assert 10 < len(texts) <= 40 and len(set(texts)) == len(texts)
    assert texts == masked_lm_head.texts_of(["demo_entailment"], None, 40)
