"""Tests that a folder's JSON is parsed once, and its address requested once."""

from pathlib import Path
import runpy

import pytest

from tests import tiny
from tests.interop import folders
import tf_adapters
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common import adapter_folder
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.text_files import parse_json
from tf_adapters.interop import formats
from tf_adapters.interop import hub
from tf_adapters.interop.stored_adapter import find_stored
from tf_adapters.models import saving
from tf_adapters.models import trained_members

ROOT = Path(__file__).parents[2]
PEFT = folders.FIXTURES / "peft" / "bert_lora"


@pytest.fixture
def parsed(monkeypatch):
    """Records the texts that are parsed as JSON of an adapter folder."""
    texts = []

    def counted(text):
        texts.append(text)
        return parse_json(text)

    for module in (formats, adapter_folder):
        monkeypatch.setattr(module, "parse_json", counted)
    return texts


def _model():
    head = heads.Classification(labels=("a", "b"))
    return tf_adapters.adapt(tiny.encoder(), methods.LoRA(rank=2), head)


def test_json_of_another_library_is_parsed_once(parsed):
    tf_adapters.load_adapter(PEFT, folders.encoder("peft/bert_lora"))
    assert len(parsed) == 1


def test_our_json_is_parsed_once(tmp_path, parsed):
    model = _model()
    tf_adapters.save_adapter(model, tmp_path / "run" / "adapter")
    tf_adapters.load_adapter(tmp_path / "run", tiny.encoder())
    assert len(parsed) == 1
    saving.start_from(model, tmp_path / "run")
    assert len(parsed) == 2
    trained_members.read_member(tmp_path / "run", tiny.encoder())
    assert len(parsed) == 3


def test_an_address_is_asked_once(tmp_path, monkeypatch):
    tf_adapters.save_adapter(_model(), tmp_path / "cached")
    asked = []

    def pull(address):
        asked.append(address)
        return tmp_path / "cached"

    monkeypatch.setattr(hub, "pull", pull)
    member = trained_members.read_member("hf://me/lora", tiny.encoder())
    assert asked == ["hf://me/lora"]
    assert member.address == "hf://me/lora"
    assert member.folder == tmp_path / "cached"


def test_a_missing_folder_is_an_error_when_it_is_read(tmp_path):
    stored = find_stored(tmp_path / "gone")
    assert not stored.path.exists()
    with pytest.raises(AdapterError, match="not an adapter folder"):
        _ = stored.config


def test_a_damaged_set_up_is_an_error_when_it_is_read(tmp_path):
    (tmp_path / "adapter_setup.json").write_text("{")
    stored = find_stored(tmp_path)
    assert stored.format == "adapterhub"
    with pytest.raises(AdapterError, match="cannot be read"):
        _ = stored.config


@pytest.mark.parametrize(
    ("form", "num_json"), [("tf_adapters", 1), ("adapterhub", 2)]
)
def test_a_folder_passes_through_few_files(form, num_json, tmp_path):
    count = runpy.run_path(str(ROOT / "benchmarks" / "count_stays.py"))["count"]
    tf_adapters.save_adapter(_model(), tmp_path / "a", format=form)
    stays, returns, files, num_parsed = count(
        ROOT / "tf_adapters",
        tmp_path / "a",
        lambda folder: tf_adapters.load_adapter(folder, tiny.encoder()),
    )
    # AdapterHub's head has a file of its own.
    assert num_parsed == num_json
    # A much smaller number would mean that the count is wrong.
    assert 20 < stays < 60
    assert returns <= 30
    assert 10 < files <= stays
