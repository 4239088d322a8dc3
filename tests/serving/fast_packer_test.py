"""The server's packer gives the token ids of training."""

import numpy as np
import pytest
from tokenizers import normalizers

from tests.serving import served
import tf_adapters
from tf_adapters.data.tokens.packer_choice import packer_of
from tf_adapters.export import odd_texts
from tf_adapters.serving import fast_packer
from tf_adapters.serving.fast_packer import FastPacker
from tf_adapters.serving.fast_packer import Packers

pytestmark = pytest.mark.integration


def test_it_packs_as_in_training():
    encoder, tokenizer = tf_adapters.load_encoder(served.ENCODER)
    packer = Packers(tokenizer, encoder.takes_segments).make(12)
    assert isinstance(packer, FastPacker)
    usual = packer_of(tokenizer, 12, encoder.takes_segments)
    texts = [*odd_texts.make()[:300], "", "the film\0", "the [MASK] film"]
    for pair in ((texts,), (texts, texts[::-1])):
        found, expected = (
            packer.tokenize_rows(*pair),
            usual.tokenize_rows(*pair),
        )
        for ours, theirs in zip(found, expected, strict=True):
            for one, other in zip(ours, theirs, strict=True):
                np.testing.assert_array_equal(one, other)


def test_a_tokenizer_that_differs_is_not_used(monkeypatch):
    encoder, tokenizer = tf_adapters.load_encoder(served.ENCODER)
    other = fast_packer.library_tokenizer(tokenizer)
    other.normalizer = normalizers.NFC()  # Keeps capital letters.
    monkeypatch.setattr(fast_packer, "library_tokenizer", lambda _: other)
    packer = Packers(tokenizer, encoder.takes_segments).make(12)
    assert not isinstance(packer, FastPacker)
