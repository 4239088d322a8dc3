"""Tests that a damaged `adapter_config.json` gives an error message.

Nothing of a size that it claims is made before the stored tensors are looked
at: the largest here would take terabytes.
"""

import json
import shutil

import pytest

from tests import stored
from tests import tiny
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common.errors import UserError
from tf_adapters.interop import listing
from tf_adapters.models import fusion_model
from tf_adapters.models import saving
from tf_adapters.models.adapter_model import adapt

HEAD = heads.Classification(("no", "yes"))
_HUGE = 10**12


@pytest.fixture(scope="module")
def encoder():
    return tiny.encoder(num_blocks=1)


@pytest.fixture(scope="module")
def saved(encoder, tmp_path_factory):
    """Returns the folder of a small adapter, which no test changes for good."""
    folder = tmp_path_factory.mktemp("saved") / "adapter"
    saving.save_adapter(adapt(encoder, methods.Pfeiffer(units=4), HEAD), folder)
    return folder


@pytest.fixture
def folder(saved):
    path = saved / "adapter_config.json"
    before = path.read_text()
    yield saved
    path.write_text(before)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("format_version", "1"),
        ("encoder", None),
        ("encoder", {"name": "x" * 5000, "fingerprint": "f"}),
        ("encoder", {"name": "x", "fingerprint": "f", "relative": 3}),
        ("method", []),
        ("method", {"name": ["pfeiffer"]}),
        ("method", {"name": "pfeiffer", "init_stddev": float("nan")}),
        ("head", {}),
        ("head", []),
        ("plugins", None),
        ("plugins", {"a": 3}),
        ("members", None),
        ("members", [3]),
        ("below", []),
        ("left_out", None),
        ("left_out", ["0"]),
        ("left_out", [True]),
        ("details", None),
        ("weights_sha256", 3),
    ],
)
def test_a_part_of_another_type_is_named(folder, encoder, key, value):
    stored.change_config(folder, lambda config: config.update({key: value}))
    expected = rf"adapter_config.json is damaged.*`{key}"
    with pytest.raises(UserError, match=expected) as error:
        saving.load_adapter(folder, encoder)
    assert len(str(error.value)) < 700
    with pytest.raises(UserError, match=expected):
        listing.list_adapters(folder.parent)


def test_nesting_is_limited(folder, encoder):
    nested = json.loads("[" * 300 + "]" * 300)
    stored.change_config(folder, lambda config: config.update(details=nested))
    with pytest.raises(UserError, match="`details` must be an object"):
        saving.load_adapter(folder, encoder)
    nested = {"a": nested}
    stored.change_config(folder, lambda config: config.update(details=nested))
    with pytest.raises(UserError, match="nested less deeply"):
        saving.load_adapter(folder, encoder)


@pytest.mark.parametrize(
    ("method", "field"),
    [
        (methods.Houlsby(units=4), "units"),
        (methods.Pfeiffer(units=4), "units"),
        (methods.BottleneckForms(units=4), "units"),
        (methods.BottleneckForms(units=4), "num_hidden_layers"),
        (methods.Compacter(reduction_factor=2.0), "order"),
        (methods.Compacter(reduction_factor=2.0), "rank"),
        (methods.Compacter(units=8, reduction_factor=None), "units"),
        (methods.Invertible(), "reduction_factor"),
        (methods.Compacter(reduction_factor=2.0), "reduction_factor"),
        (methods.LoRA(rank=2), "rank"),
        (methods.PrefixTuning(prefix_length=2, hidden_units=3), "hidden_units"),
        (methods.PrefixTuning(prefix_length=2), "prefix_length"),
        (methods.PromptTuning(prompt_length=2), "prompt_length"),
        (methods.ProjectedAttention(units=8, num_heads=2), "units"),
        (methods.TopLayers(), "k"),
    ],
    ids=lambda v: v if isinstance(v, str) else methods.name_of(v),
)
def test_sizes_are_compared_before_anything_is_made(
    method, field, encoder, tmp_path
):
    saving.save_adapter(adapt(encoder, method), tmp_path / "adapter")
    changed = {field: 1e-12 if field == "reduction_factor" else _HUGE}
    stored.change_config(
        tmp_path / "adapter", lambda config: config["method"].update(changed)
    )
    with pytest.raises(UserError):
        saving.load_adapter(tmp_path / "adapter", encoder)


@pytest.mark.parametrize("field", ["vocabulary_size", "embedding_width"])
def test_the_size_of_a_head_is_the_encoders(field, encoder, tmp_path):
    head = heads.MaskedLM(tiny.VOCABULARY, tiny.WIDTH)
    folder = tmp_path / "adapter"
    saving.save_adapter(adapt(encoder, methods.HeadOnly(), head), folder)
    stored.change_config(
        folder, lambda config: config["head"].update({field: _HUGE})
    )
    with pytest.raises(UserError, match=f"{tiny.VOCABULARY} tokens"):
        saving.load_adapter(folder, encoder)


def test_a_fusion_is_as_wide_as_its_members(encoder, saved, tmp_path):
    model = fusion_model.fuse(encoder, adapters=[saved])
    saving.save_adapter(model, tmp_path / "fusion")
    stored.change_config(
        tmp_path / "fusion",
        lambda config: config["method"].update(units=_HUGE),
    )
    with pytest.raises(UserError, match="members of"):
        saving.load_adapter(tmp_path / "fusion", encoder)


def test_links_that_lead_nowhere_are_not_listed(saved, tmp_path):
    shutil.copytree(saved, tmp_path / "adapter")
    (tmp_path / "adapter" / "old.safetensors").symlink_to("gone")
    for name, target in (("broken", "gone"), ("loop", "adapter_config.json")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "adapter_config.json").symlink_to(target)
    (tmp_path / "folder" / "adapter_config.json").mkdir(parents=True)
    (found,) = listing.list_adapters(tmp_path)
    assert found.folder == tmp_path / "adapter"


def test_metrics_that_cannot_be_listed(folder):
    details = {"metrics": {"f1": 10**400}}
    stored.change_config(folder, lambda config: config.update(details=details))
    with pytest.raises(UserError, match="is damaged"):
        listing.list_adapters(folder.parent)
