"""Tests the errors of `export_model` for wrong arguments."""

import pytest

from tests import commands
from tests import tiny
import tf_adapters
from tf_adapters import methods
from tf_adapters.common.errors import UserError


@pytest.fixture(scope="module")
def parts():
    _, tokenizer = tf_adapters.load_encoder(commands.ENCODER)
    head = tf_adapters.heads.Classification(("no", "yes"))
    encoder = tiny.encoder(num_blocks=1)
    model = tf_adapters.adapt(encoder, methods.IA3(), head)
    return model, tokenizer, tf_adapters.TextPacker(tokenizer, 16)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            lambda model, tokenizer, packer: (model, tokenizer),
            r"^Expected as `packer` of `export_model\(model, packer, folder\)`",
        ),
        (
            lambda model, tokenizer, packer: (model, tokenizer, "exports/x"),
            r"TextPacker\(tokenizer, max_length=...\)`.*<WordPieceTokenizer",
        ),
        (
            lambda model, tokenizer, packer: (model, packer),
            "^Expected as `folder` .*Received: None",
        ),
        (
            lambda model, tokenizer, packer: ("runs/one", packer, "exports/x"),
            "^Expected as `model` .*Received: 'runs/one'",
        ),
    ],
)
def test_arguments_that_are_other_things(parts, arguments, message):
    with pytest.raises(UserError, match=message):
        tf_adapters.export_model(*arguments(*parts))
