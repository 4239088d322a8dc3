"""ModernBERT, a backbone of ours, against PyTorch's; slots and tokenizer."""

import shutil

import keras_hub
import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file
from safetensors.numpy import save_file
import transformers

from tests import tiny
from tests.encoders import comparison
from tests.fixtures import huggingface_folders
from tests.fixtures.sentences import SENTENCES
from tests.references import modernbert_numpy
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common.errors import UserError
from tf_adapters.data.tokens.packing import TextPacker
from tf_adapters.encoders.load import load_encoder
from tf_adapters.models import saving
from tf_adapters.models.adapted_encoder import AdaptedEncoder
from tf_adapters.models.adapter_model import adapt
from tf_adapters.models.bank_model import load_bank

pytestmark = pytest.mark.integration

FOLDER = huggingface_folders.folder("modernbert")
# What vocabularies with added tokens, accents and spaces may get wrong.
TEXTS = [
    *SENTENCES,
    "a  b   c    d                 e",
    "  two before, two behind  ",
    "x [SEP] y [MASK] z",
    "at |||IP_ADDRESS||| now",
    "cafe\u0301 and caf\u00e9",
    "tab\t\tand\n\nline",
]


@pytest.fixture(scope="module")
def loaded():
    return load_encoder(FOLDER)


def test_longest_texts_and_padding_on_the_left(loaded):
    comparison.check_longest(loaded[0], "modernbert")


def test_backbones_own_call_equals_pytorch(loaded):
    features, expected = huggingface_folders.expected("modernbert")
    tokens = features["padding_mask"] == 1
    output = np.asarray(loaded[0].backbone(features))
    difference = np.abs(output - expected["hidden_states"][-1])
    assert difference[tokens].max() < 1e-5


def _bottleneck(model, number, place, x):
    """Returns a bottleneck's output of NumPy arrays."""
    weights = {
        name: np.float64(v)
        for name, v in model.slot_weights(number, place).items()
    }
    down, down_bias, up, up_bias = (
        weights[f"delta/{name}"]
        for name in ("down_kernel", "down_bias", "up_kernel", "up_bias")
    )
    return np.maximum(x @ down + down_bias, 0) @ up + up_bias


@pytest.mark.parametrize(
    "method",
    [
        methods.HeadOnly(),
        methods.Houlsby(units=4, activation="relu"),
        methods.Pfeiffer(units=4, activation="relu"),
        methods.BottleneckForms(
            units=4, activation="relu", parallel=True, pretrained_norm="after"
        ),
        methods.AdapterBias(),
    ],
    ids=lambda method: type(method).__name__,
)
def test_slots_of_blocks_with_norms_before_their_sublayers(method):
    model = adapt(tiny.encoder("modernbert", num_blocks=3), method)
    tiny.randomize(model.trained_variables().values())
    features = tiny.batch(model.encoder_info)

    def slot(number, name, y, h, inner):
        place = f"after_{name}"
        if place not in model.slots[number]:
            return y
        if isinstance(method, methods.AdapterBias):
            found = model.slot_weights(number, place)
            found = {
                k.rsplit("/", 1)[-1]: np.float64(v) for k, v in found.items()
            }
            alpha = inner @ found["kernel"] + found["bias"]
            return y + alpha * found["vector"]
        is_parallel = isinstance(method, methods.BottleneckForms)
        read = h if is_parallel else y
        return y + _bottleneck(model, number, place, read)

    backbone = model.encoder.backbone
    expected = modernbert_numpy.encode(
        {v.path: v.numpy() for v in backbone.weights},
        features,
        backbone.get_config(),
        slot,
    )
    tokens = features["padding_mask"] == 1
    output = np.asarray(model(features)["sequence_output"])
    np.testing.assert_allclose(output[tokens], expected[tokens], atol=1e-5)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (methods.BitFit(), "ModernBertBackbone has none. Train its norms"),
        (
            methods.BottleneckForms(units=4, pretrained_norm="before"),
            "`after_ffn_norm`.*nothing can be attached after a norm",
        ),
    ],
)
def test_what_has_no_meaning_is_refused(method, message):
    with pytest.raises(UserError, match=message):
        adapt(tiny.encoder("modernbert"), method)


@pytest.mark.parametrize(
    "method", [methods.PrefixTuning(3), methods.PromptTuning(3)]
)
def test_padding_behind_the_text_changes_nothing(loaded, method):
    model = adapt(loaded[0], method)
    features, _ = huggingface_folders.expected("modernbert")
    padded = {k: np.pad(v, [(0, 0), (0, 4)]) for k, v in features.items()}
    tokens = features["padding_mask"] == 1
    wide = np.asarray(model(padded)["sequence_output"])[:, :12]
    narrow = np.asarray(model(features)["sequence_output"])
    np.testing.assert_allclose(wide[tokens], narrow[tokens], atol=1e-5)


def test_texts_are_packed_as_transformers_packs_them(loaded):
    original = transformers.AutoTokenizer.from_pretrained(str(FOLDER))
    in_graph = loaded[1].in_graph()
    for tokenizer in (loaded[1], in_graph):
        packer = TextPacker(tokenizer, 10_000)
        assert packer.mask == "[MASK]"
        for seconds in (None, TEXTS[::-1]):
            rows, segments = packer.tokenize_rows(TEXTS, seconds)
            expected = original(TEXTS, seconds, split_special_tokens=True)
            assert [row.tolist() for row in rows] == expected["input_ids"]
            assert segments is None


def test_a_keras_file_takes_texts(loaded, tmp_path):
    comparison.check_keras_file(*loaded, tmp_path / "model.keras")


def test_the_savedmodel_takes_texts(loaded, tmp_path):
    comparison.check_export(*loaded, tmp_path)


def test_preset_round_trip(loaded, tmp_path):
    encoder, tokenizer = loaded
    encoder.backbone.save_to_preset(str(tmp_path))
    tokenizer.in_graph().save_to_preset(str(tmp_path))
    again, tokens = load_encoder(tmp_path)
    assert again.fingerprint == encoder.fingerprint
    texts = ["the film", "un  film"]
    assert tokens(texts) == tokenizer(texts)
    keras_hub.models.Backbone.from_preset(str(tmp_path))


def test_config_of_transformers_5(loaded, tmp_path):
    """It says per block what version 4 says in two numbers."""
    copy = shutil.copytree(FOLDER, tmp_path / "modernbert")
    config = transformers.AutoConfig.from_pretrained(copy)
    config.rope_parameters["sliding_attention"]["rope_theta"] = 5000.0
    config.save_pretrained(copy)
    text = (copy / "config.json").read_text()
    assert "layer_types" in text
    assert "global_rope_theta" not in text
    again, _ = load_encoder(copy, with_tokenizer=False)
    config, before = (e.backbone.get_config() for e in (again, loaded[0]))
    assert config == {**before, "local_theta": 5000.0, "name": config["name"]}


def test_a_type_of_positions_that_is_not_read_is_allowed(tmp_path):
    copy = shutil.copytree(FOLDER, tmp_path / "modernbert")
    comparison.change_config(copy, position_embedding_type="sans_pos")
    load_encoder(copy, with_tokenizer=False)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"attention_bias": True}, "attention_bias=False.*Received: .*=True"),
        ({"mlp_dropout": 0.1}, "mlp_dropout=0.0"),
        ({"hidden_activation": "relu"}, "hidden_activation='gelu'"),
        ({"local_attention": "wide"}, "`local_attention` must be a number"),
        ({"global_rope_theta": -1}, "`global_rope_theta` must be a number"),
        ({"layer_types": ["full_attention"] * 3}, "every n-th of the 4 blocks"),
        (
            {"rope_parameters": {"full_attention": {"rope_type": "yarn"}}},
            "rope_type='default'.*Received: 'yarn'",
        ),
        (
            {"rope_scaling": {"type": "yarn"}},
            "`rope_scaling`.*Received: 'yarn'",
        ),
        ({"num_hidden_layers": 3}, "does not describe: .*layers.3.attn"),
        ({"num_hidden_layers": 5}, "incomplete.*layers.4.attn"),
        ({"intermediate_size": 40}, r"\(80, 24\).*Received: shape \(96, 24\)"),
    ],
)
def test_config_that_does_not_fit(tmp_path, changes, message):
    copy = shutil.copytree(FOLDER, tmp_path / "modernbert")
    comparison.change_config(copy, **changes)
    with pytest.raises(UserError, match=message):
        load_encoder(copy)


def test_fused_projections_of_another_size_are_refused(tmp_path):
    copy = shutil.copytree(FOLDER, tmp_path / "modernbert")
    path = copy / "model.safetensors"
    tensors = load_file(path)
    tensors["layers.1.attn.Wqkv.weight"] = np.ones((70, 24), "float32")
    save_file(tensors, path)
    with pytest.raises(
        UserError, match=r"Wqkv.key.weight.*Received: shape \(23"
    ):
        load_encoder(copy)


def test_a_folder_without_tokenizer(tmp_path):
    copy = shutil.copytree(FOLDER, tmp_path / "modernbert")
    (copy / "tokenizer.json").unlink()
    with pytest.raises(UserError, match="holds no vocabulary. Expected: "):
        load_encoder(copy)


@pytest.mark.parametrize(
    ("dtype", "most"), [("float16", 2e-2), (ml_dtypes.bfloat16, 0.2)]
)
def test_weights_in_half_precision(dtype, most, tmp_path):
    copy = shutil.copytree(FOLDER, tmp_path / "modernbert")
    path = copy / "model.safetensors"
    halves = {k: v.astype(dtype) for k, v in load_file(path).items()}
    save_file(halves, path)
    features, expected = huggingface_folders.expected("modernbert")
    tokens = features["padding_mask"] == 1
    encoder, _ = load_encoder(copy)
    output = AdaptedEncoder(encoder)(features)["sequence_output"]
    difference = np.abs(np.asarray(output) - expected["hidden_states"][-1])
    assert 1e-4 < difference[tokens].max() < most


def test_a_bank_of_trained_norms_answers_as_its_members(tmp_path):
    """Block 0 has one norm less, and a final one follows the last block."""
    head = heads.Classification(("no", "yes"))
    folders, answers = [], []
    for seed in range(2):
        encoder = tiny.encoder("modernbert")
        model = adapt(encoder, methods.Houlsby(units=4), head)
        tiny.randomize(model.trained_variables().values(), seed=seed)
        answers.append(np.asarray(model(tiny.batch(encoder))))
        folders.append(str(tmp_path / str(seed)))
        saving.save_adapter(model, folders[-1])
    bank = load_bank(folders, tiny.encoder("modernbert"))
    ids = np.array([1, 0, 1])
    mixed = bank({**tiny.batch(bank.encoder_info), "adapter_ids": ids})
    expected = np.stack(answers)[ids, np.arange(3)]
    np.testing.assert_allclose(mixed, expected, atol=1e-5)
