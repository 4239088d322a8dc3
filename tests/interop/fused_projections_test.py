"""LoRAs of ModernBERT's `Wqkv`, which is three projections of ours."""

import json
import re
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file
from safetensors.numpy import save_file

from tests import tiny
from tests.interop import folders
import tf_adapters
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common.errors import AdapterError

pytestmark = pytest.mark.integration

CASE = "peft/modernbert_lora"


@pytest.mark.parametrize(
    ("method", "ranks"),
    [
        (methods.LoRA(rank=2), {"Wqkv": 4}),
        (methods.LoRA(2, 6.0, projections=("key",), leave_out=(1,)), {}),
        (methods.LoRA(3, projections=("key", "value", "ffn_up")), {"Wqkv": 6}),
    ],
)
def test_own_adapters_answer_alike_after_a_way_out_and_in(
    method, ranks, tmp_path
):
    encoder = folders.encoder(CASE)
    model = tf_adapters.adapt(encoder, method)
    tiny.randomize(model.trained_variables().values())
    features = tiny.batch(encoder)
    tf_adapters.save_adapter(model, tmp_path / "peft", format="peft")
    text = (tmp_path / "peft/adapter_config.json").read_text()
    assert json.loads(text)["rank_pattern"] == ranks
    again = tf_adapters.load_adapter(tmp_path / "peft", encoder)
    np.testing.assert_allclose(
        again(features)["sequence_output"],
        model(features)["sequence_output"],
        atol=1e-5,
    )


def test_left_out_blocks_are_named_in_an_expression(tmp_path):
    # PEFT finds no number of a block in `layers.0.attn.Wqkv`.
    method = methods.LoRA(2, projections=("key", "ffn_down"), leave_out=(1,))
    model = tf_adapters.adapt(folders.encoder(CASE), method)
    tf_adapters.save_adapter(model, tmp_path / "peft", format="peft")
    config = json.loads((tmp_path / "peft/adapter_config.json").read_text())
    assert config["layers_to_transform"] is None
    ends = ("attn.Wqkv", "attn.Wo", "mlp.Wo")
    names = [f"layers.{block}.{end}" for block in (0, 1) for end in ends]
    found = [n for n in names if re.fullmatch(config["target_modules"], n)]
    assert found == ["layers.0.attn.Wqkv", "layers.0.mlp.Wo"]


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (methods.IA3(form="peft"), "Received: IA3"),
        (methods.LayerNorm(), "Received: LN_TUNING"),
        (methods.PrefixTuning(3, form="peft"), "does not run on ModernBert"),
        (methods.Pfeiffer(units=4), "PEFT has no method `pfeiffer`"),
    ],
)
def test_methods_that_peft_has_in_another_form(method, message, tmp_path):
    model = tf_adapters.adapt(folders.encoder(CASE), method)
    with pytest.raises(AdapterError, match=message):
        tf_adapters.save_adapter(model, tmp_path / "peft", format="peft")


def test_heads_have_a_norm_that_ours_lack(tmp_path):
    copy = shutil.copytree(folders.FIXTURES / CASE, tmp_path / "peft")
    folders.edit(copy / "adapter_config.json", "task_type", "SEQ_CLS")
    path = copy / "adapter_model.safetensors"
    classifier = {"base_model.model.classifier.weight": np.ones((2, 24))}
    save_file({**load_file(path), **classifier}, path)
    encoder = folders.encoder(CASE)
    with pytest.raises(AdapterError, match="norm, .* with_head=False"):
        tf_adapters.load_adapter(copy, encoder)
    alone = tf_adapters.load_adapter(copy, encoder, with_head=False)
    expected = load_file(f"{folders.FIXTURES / CASE}.safetensors")
    np.testing.assert_allclose(*folders.answer(alone, expected), atol=1e-5)
    model = tf_adapters.adapt(
        encoder, methods.LoRA(), heads.Classification(("no", "yes"))
    )
    with pytest.raises(AdapterError, match="--with_head=false"):
        tf_adapters.save_adapter(model, tmp_path / "back", format="peft")
