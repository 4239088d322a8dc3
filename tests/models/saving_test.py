"""Tests that adapter folders load strictly or not at all."""

import json
import pathlib
import resource

import numpy as np
import pytest
from safetensors.numpy import load_file

from tests import stored
from tests import tiny
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common import adapter_folder
from tf_adapters.common import own_files
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import UserError
from tf_adapters.models import saving
from tf_adapters.models.adapter_model import adapt

HEAD = heads.Classification(("no", "yes"))


@pytest.fixture
def folder(tmp_path):
    model = adapt(tiny.encoder(), methods.Pfeiffer(units=4), HEAD)
    saving.save_adapter(model, tmp_path / "adapter", {"task": "toy"})
    return tmp_path / "adapter"


def _flip(path, bit):
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def test_folder_holds_three_files_and_only_what_was_trained(folder):
    assert sorted(path.name for path in folder.iterdir()) == [
        "README.md",
        "adapter.safetensors",
        "adapter_config.json",
    ]
    tensors = load_file(folder / "adapter.safetensors")
    assert sum(v.size for v in tensors.values()) == 2 * (2 * 64 + 20) + 34
    assert "toy" in (folder / "README.md").read_text()


def test_saving_again_replaces_the_folder_and_leaves_no_rest(folder):
    model = saving.load_adapter(folder, tiny.encoder())
    tiny.randomize(model.trained_variables().values())
    (folder / "old").write_text("")
    saving.save_adapter(model, folder)
    assert not (folder / "old").exists()
    assert [p.name for p in folder.parent.iterdir()] == ["adapter"]


@pytest.mark.parametrize(
    ("part", "method", "head", "seed"),
    [
        ("method", methods.Pfeiffer(units=2), HEAD, 0),
        ("head", methods.Pfeiffer(units=4), None, 0),
        ("encoder", methods.Pfeiffer(units=4), HEAD, 1),
    ],
)
def test_the_adapter_of_another_model_is_not_replaced_unasked(
    folder, part, method, head, seed
):
    before = (folder / "adapter.safetensors").read_bytes()
    model = adapt(tiny.encoder(seed=seed), method, head)
    with pytest.raises(
        saving.AdapterError, match=f"its {part} is .* overwrite=True"
    ):
        saving.save_adapter(model, folder)
    assert (folder / "adapter.safetensors").read_bytes() == before
    saving.save_adapter(model, folder, overwrite=True)
    saving.load_adapter(folder, tiny.encoder(seed=seed))


def test_the_adapter_of_a_finished_run_is_not_replaced_unasked(folder):
    model = adapt(tiny.encoder(), methods.Pfeiffer(units=4), HEAD)
    (folder.parent / "result.json").write_text("{}")
    saving.save_adapter(model, folder)  # A program's own result.
    (folder.parent / "config.yaml").write_text("{}")
    with pytest.raises(saving.AdapterError, match="of a finished run, .*True"):
        saving.save_adapter(model, folder)
    saving.save_adapter(model, folder, overwrite=True)


class _Killed(BaseException):
    """As if the process had ended."""


def test_a_kill_while_the_old_one_is_removed_leaves_a_whole_one(
    folder, monkeypatch
):
    model = saving.load_adapter(folder, tiny.encoder())

    def die_in_the_middle(path, ignore_errors):
        if path.exists():
            (path / "adapter_config.json").unlink()
            raise _Killed

    with monkeypatch.context() as patch:
        patch.setattr(own_files.shutil, "rmtree", die_in_the_middle)
        with pytest.raises(_Killed):
            saving.save_adapter(model, folder, {"task": "new"})
    assert adapter_folder.read_adapter_config(folder)["details"] == {
        "task": "new"
    }
    saving.load_adapter(folder, tiny.encoder())
    saving.save_adapter(model, folder)
    assert [p.name for p in folder.parent.iterdir()] == ["adapter"]


def test_a_kill_between_the_two_renames_leaves_the_old_one(folder, monkeypatch):
    model = saving.load_adapter(folder, tiny.encoder())
    tensors = adapter_folder.read_tensors(folder / "adapter.safetensors")
    rename = pathlib.Path.rename

    def die_at_the_second(path, target):
        if target == folder:
            raise _Killed
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(pathlib.Path, "rename", die_at_the_second)
        with pytest.raises(_Killed):
            tiny.randomize(model.trained_variables().values())
            saving.save_adapter(model, folder)
    assert not folder.exists()
    loaded = saving.load_adapter(folder, tiny.encoder())
    for name, variable in loaded.trained_variables().items():
        np.testing.assert_array_equal(variable, tensors[name])
    saving.save_adapter(model, folder)
    assert adapter_folder.find_adapter_folder(folder) == folder


def test_a_folder_of_something_else_is_not_deleted(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    model = adapt(tiny.encoder(), methods.HeadOnly(), HEAD)
    with pytest.raises(saving.AdapterError, match="not an adapter folder"):
        saving.save_adapter(model, tmp_path)
    assert (tmp_path / "thesis.tex").exists()


@pytest.mark.parametrize("form", ["adapterhub", "peft"])
def test_another_librarys_folder_is_not_deleted(form, tmp_path):
    model = adapt(tiny.encoder(), methods.LoRA(), HEAD)
    folder = tmp_path / "adapter"
    saving.save_adapter(model, folder, format=form, with_head=False)
    before = sorted(folder.rglob("*"))
    with pytest.raises(saving.AdapterError, match="of this library"):
        saving.save_adapter(model, folder)
    assert sorted(folder.rglob("*")) == before


def test_another_encoder_is_refused(folder):
    with pytest.raises(saving.AdapterError, match="fingerprint"):
        saving.load_adapter(folder, tiny.encoder(seed=1))


def test_an_encoder_that_was_trained_is_refused(folder):
    encoder = tiny.encoder()
    encoder.backbone.get_layer("embeddings_layer_norm").gamma.assign([2.0] * 16)
    with pytest.raises(
        saving.AdapterError, match="with fingerprint .* Load that encoder"
    ):
        saving.load_adapter(folder, encoder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.pop("head/bias"), "Missing: head/bias"),
        (lambda t: t.update(extra=np.ones(2)), "Unexpected: extra"),
        (
            lambda t: t.update({"head/bias": np.ones(3, "float32")}),
            r"`head/bias` has shape \(3,\).*needs \(2,\)",
        ),
        (
            lambda t: t["head/bias"].put(1, np.nan),
            "`head/bias` has values that are not finite",
        ),
    ],
)
def test_weights_that_do_not_fit_are_named(folder, change, message):
    stored.change_weights(folder, change)
    with pytest.raises(saving.AdapterError, match=message):
        saving.load_adapter(folder, tiny.encoder())


def test_nothing_is_assigned_if_one_weight_is_wrong(folder):
    model = saving.load_adapter(folder, tiny.encoder())
    before = {n: v.numpy() for n, v in model.trained_variables().items()}
    first, *_, last = sorted(n for n in before if not n.startswith("head/"))
    stored.change_weights(folder, lambda t: t.update({first: t[first] + 1}))
    stored.change_weights(
        folder, lambda t: t.update({last: np.ones(3, "float32")})
    )
    with pytest.raises(saving.AdapterError, match=r"has shape \(3,\)"):
        saving.start_from(model, folder)
    for name, variable in model.trained_variables().items():
        np.testing.assert_array_equal(variable, before[name])


def test_missing_weights_and_missing_folder(folder):
    (folder / "adapter.safetensors").unlink()
    with pytest.raises(saving.AdapterError, match="is missing"):
        saving.load_adapter(folder, tiny.encoder())
    with pytest.raises(saving.AdapterError, match="not an adapter folder"):
        saving.load_adapter(folder / "nowhere", tiny.encoder())


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"format_version": 1}'])
def test_damaged_configuration(folder, text):
    (folder / "adapter_config.json").write_text(text)
    with pytest.raises(
        saving.AdapterError, match="damaged, or was not written"
    ):
        saving.load_adapter(folder, tiny.encoder())


def test_a_flipped_bit_is_refused(folder):
    path = folder / "adapter.safetensors"
    encoder = tiny.encoder()
    bits = np.random.default_rng(0).choice(8 * path.stat().st_size, 100)
    for bit in map(int, bits):
        _flip(path, bit)
        with pytest.raises(saving.AdapterError, match="damaged"):
            saving.load_adapter(folder, encoder)
        _flip(path, bit)
    saving.load_adapter(folder, encoder)


def test_weights_of_another_adapter_are_refused(folder, tmp_path):
    model = saving.load_adapter(folder, tiny.encoder())
    tiny.randomize(model.trained_variables().values())
    saving.save_adapter(model, tmp_path / "other")
    name = "adapter.safetensors"
    (folder / name).write_bytes((tmp_path / "other" / name).read_bytes())
    with pytest.raises(
        saving.AdapterError, match="belongs to another adapter_"
    ):
        saving.load_adapter(folder, tiny.encoder())


def test_a_folder_from_before_there_was_a_checksum_is_read(folder):
    stored.change_weights(
        folder, lambda t: t.update({"head/bias": t["head/bias"] + 1})
    )
    model = saving.load_adapter(folder, tiny.encoder())
    np.testing.assert_array_equal(model.head_layer.bias, [1, 1])


def test_a_newer_format_is_refused(folder):
    path = folder / "adapter_config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps({**config, "format_version": 99}))
    with pytest.raises(saving.AdapterError, match="format 99"):
        saving.load_adapter(folder, tiny.encoder())


@pytest.mark.parametrize("format", ["tf_adapters", "peft", "adapterhub"])
def test_a_full_disk_is_an_error_of_the_system(tmp_path, format):
    model = adapt(tiny.encoder(num_blocks=1), methods.LoRA(rank=2))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            saving.save_adapter(model, tmp_path / "lora", format=format)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("format", ["tf_adapters", "peft"])
def test_weights_that_no_reader_takes_are_not_saved(tmp_path, format, value):
    model = adapt(tiny.encoder(num_blocks=1), methods.LoRA(rank=2))
    name, variable = list(model.trained_variables().items())[-1]
    variable.assign(np.full(variable.shape, value))
    with pytest.raises(saving.AdapterError, match=f"^Weight `{name}` has val"):
        saving.save_adapter(model, tmp_path / "lora", format=format)
    assert not (tmp_path / "lora").exists()


def test_the_working_directory_may_be_an_adapter_folder(folder, monkeypatch):
    monkeypatch.chdir(folder)
    loaded = saving.load_adapter(".", tiny.encoder())
    assert loaded.method == methods.Pfeiffer(units=4)
    assert adapter_folder.find_adapter_folder("/") == pathlib.Path("/")


def test_numbers_of_numpy_are_stored(tmp_path):
    method = methods.Pfeiffer(
        units=np.int64(4), leave_out=(np.int32(0),), init_stddev=np.float32(0.5)
    )
    head = heads.MultiLabel(("no", "yes"), threshold=np.float64(0.25))
    assert type(method.units) is int
    assert method.leave_out == (0,)
    model = adapt(tiny.encoder(), method, head)
    details = {"scores": np.array([1.5, 2.0]), "rows": np.int64(3)}
    saving.save_adapter(model, tmp_path / "adapter", details)
    loaded = saving.load_adapter(tmp_path / "adapter", tiny.encoder())
    assert loaded.method == method
    assert loaded.head == head
    stored = adapter_folder.read_adapter_config(tmp_path / "adapter")
    assert stored["details"] == {"scores": [1.5, 2.0], "rows": 3}
    with pytest.raises(AdapterError, match="no values of type set"):
        saving.save_adapter(model, tmp_path / "other", {"tags": {1}})
    with pytest.raises(AdapterError, match="cannot be stored as JSON: keys"):
        saving.save_adapter(model, tmp_path / "other", {"x": {np.int64(1): 2}})
    assert type(methods.Pfeiffer(mixout=np.longdouble(0.5)).mixout) is float
    with pytest.raises(UserError, match="`leave_out` of Pfeiffer .* integers"):
        methods.Pfeiffer(leave_out=(np.int64(0), (1, 2)))
    with pytest.raises(UserError, match="`leave_out` of Pfeiffer .* integers"):
        methods.Pfeiffer(leave_out=("0",))


@pytest.mark.parametrize("place", [".", ".."])
def test_the_working_folder_is_not_replaced(folder, monkeypatch, place):
    model = saving.load_adapter(folder, tiny.encoder())
    (folder / "inside").mkdir()
    monkeypatch.chdir(folder if place == "." else folder / "inside")
    with pytest.raises(AdapterError, match="is the folder in which you work"):
        saving.save_adapter(model, place)
    assert (folder / "adapter.safetensors").exists()
