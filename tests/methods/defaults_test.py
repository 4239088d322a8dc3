"""Tests that the defaults of a class equal the preset of its name."""

import dataclasses

import numpy as np
import pytest

from tests import tiny
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common.errors import UserError
from tf_adapters.config import presets
from tf_adapters.config import resolve
from tf_adapters.models import saving
from tf_adapters.models.adapter_model import adapt

_LIBRARY = "the `adapters` library's numbers, and not the paper's"
_TABLE_4 = "a row of AdapterBias's table 4, whose counts need both norms"
_PARALLEL = "another form than the one that Pfeiffer et al. found best"
_PARTS = "a union without parts adds nothing"
_HOULSBY_LIBRARY = {
    *("reduction_factor", "activation", "initialization"),
    *("init_stddev", "train_layer_norms"),
}
# What presets set otherwise than the class, and why. Each is a variant with a
# name of its own: no class differs from the preset of its name.
VARIANTS = {
    "adapter_bias_code": ({"train_norms"}, "the authors' code"),
    "adapter_bias_counts": ({"train_norms"}, "the counts of table 4"),
    "adapter_bias_figure": ({"alpha_input"}, "figure 3"),
    "adapter_bias_l0": ({"train_norms", "l0_lambda"}, "section 3.2.2"),
    "adapter_bias_no_alpha": ({"use_alpha", "train_norms"}, "table 3"),
    "adapter_bias_share_alpha": ({"share_alpha", "train_norms"}, _TABLE_4),
    "adapter_bias_share_both": (
        {"share_vector", "share_alpha", "train_norms"},
        _TABLE_4,
    ),
    "adapter_bias_share_v": ({"share_vector", "train_norms"}, _TABLE_4),
    "compacter_plus_plus": ({"placement"}, "one adapter a block"),
    "diff_pruning_unstructured": ({"structured"}, "no gates of groups"),
    "houlsby_code": ({"init_stddev"}, "the authors' code"),
    "houlsby_han2021": (_HOULSBY_LIBRARY, "Han et al. used the library"),
    "houlsby_he2021": ({"units", "activation"}, "He et al., section 3.1"),
    "houlsby_he2021_xtreme": ({"units", "activation"}, "He et al., table 11"),
    "houlsby_library": (_HOULSBY_LIBRARY, _LIBRARY),
    "houlsby_mixout": ({"activation", "mixout"}, "He et al., table 7"),
    "language_adapter": ({"parts"}, _PARTS),
    "mam": ({"parts"}, _PARTS),
    "mixout": ({"mixout"}, "He et al., table 7"),
    "mixout_he2021": ({"mixout"}, "He et al., table 7"),
    "parallel": (
        {"parallel", "pretrained_norm", "reduction_factor", "initialization"}
        | {"scaling"},
        _PARALLEL,
    ),
    "scaled_parallel": (
        {"parallel", "pretrained_norm", "reduction_factor", "initialization"}
        | {"learned_scaling"},
        _PARALLEL,
    ),
    "unipelt": ({"parts"}, _PARTS),
}


def _given(preset):
    """Returns the settings of a command, without the preset."""
    return {"tasks": preset.tasks} if preset.tasks else {}


@pytest.mark.parametrize("name", presets.preset_names())
def test_a_preset_is_the_class_or_a_named_variant(name):
    settings = {"task": "rte", "method": name}
    if name == "multitask":
        settings = {"method": {"name": name, "tasks": ["rte", "mrpc"]}}
    preset = resolve.resolve_config(settings).method
    default = dataclasses.replace(type(preset)(), **_given(preset))
    differ = {
        field.name
        for field in dataclasses.fields(preset)
        if getattr(preset, field.name) != getattr(default, field.name)
    }
    assert differ == VARIANTS.get(name, (set(), ""))[0]


def test_no_variant_has_the_name_of_a_method():
    assert not set(VARIANTS) & set(methods.METHODS)
    assert set(VARIANTS) <= set(presets.preset_names())


@pytest.mark.parametrize(
    ("cls", "factor"),
    [
        (methods.Pfeiffer, 16),
        (methods.BottleneckForms, 16),
        (methods.Compacter, 32),
    ],
)
def test_units_alone_say_how_wide_a_bottleneck_is(cls, factor):
    assert cls() == cls(reduction_factor=factor)
    assert (cls(units=8).units, cls(units=8).reduction_factor) == (8, None)
    assert cls(units=8) == cls(units=8, reduction_factor=None) != cls()


@pytest.mark.parametrize(
    ("stored", "same_as"),
    [
        ({"units": 64, "reduction_factor": None}, methods.Pfeiffer(units=64)),
        ({"units": 64, "reduction_factor": 16.0}, methods.Pfeiffer()),
        ({"units": 64}, methods.Pfeiffer(units=64)),
        ({}, methods.Pfeiffer()),
    ],
)
def test_a_folder_of_version_0_1_0_means_what_it_meant(stored, same_as):
    """Such a folder has both settings; `reduction_factor` wins if given."""
    assert methods.from_config({"name": "pfeiffer", **stored}) == same_as


def test_an_adapter_loads_from_a_folder_of_version_0_1_0(tmp_path):
    head = heads.Classification(("no", "yes"))
    model = adapt(tiny.encoder(num_blocks=1), methods.Pfeiffer(), head)
    saving.save_adapter(model, tmp_path / "adapter")
    path = tmp_path / "adapter" / "adapter_config.json"
    text = path.read_text(encoding="utf-8")
    assert '"units": null' in text
    path.write_text(text.replace('"units": null', '"units": 64'), "utf-8")
    saving.start_from(model, tmp_path / "adapter")


@pytest.mark.parametrize("name", ["order", "rank"])
def test_a_compacter_needs_an_order_and_a_rank(name):
    with pytest.raises(UserError, match=f"^`{name}` must be 1 or more"):
        methods.Compacter(**{name: 0})


def test_the_shared_factors_of_compacter_start_as_in_the_library():
    shape = methods.EncoderShape(num_blocks=1, width=32, ffn_width=8)
    (slots,) = methods.Compacter(units=8, order=8).make_slots(shape)
    factors = slots["after_ffn"].factors.factors
    assert 0.8e-4 < np.std(factors.numpy()) < 1.2e-4
