"""Damaged folders of other libraries are read or refused, 1,000 of them."""

import random
import shutil

import pytest

from tests.fuzz import damaging
from tests.interop import folders
from tests.interop.torch_files import write_torch_file
from tf_adapters.common.errors import UserError
from tf_adapters.interop import foreign_folder
from tf_adapters.interop import formats
from tf_adapters.interop import stored_adapter
from tf_adapters.models import adapter_reading

pytestmark = pytest.mark.integration
SOURCES = [c for c in folders.CASES if "/bert" in c]


def _as_torch(path):
    from safetensors.numpy import load_file

    stem = path.stem if path.stem == "adapter_model" else f"pytorch_{path.stem}"
    write_torch_file(path.with_name(f"{stem}.bin"), load_file(path))
    path.unlink()


def _damage(folder, chance):
    if chance.random() < 0.3:
        for path in folder.rglob("*.safetensors"):
            _as_torch(path)
    for damage in damaging.draw(folder, chance):
        damage.apply(folder)


def test_a_damaged_folder_is_read_or_refused(tmp_path):
    encoder, refused = folders.encoder("x/bert"), 0
    for number in range(1000):
        chance = random.Random(number)
        folder = tmp_path / "task"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(folders.FIXTURES / chance.choice(SOURCES), folder)
        _damage(folder, chance)
        stored = stored_adapter.find_stored(folder)
        if stored.format == formats.OURS:
            refused += 1
            continue
        try:
            read = foreign_folder.read_folder(stored, encoder)
            adapter_reading.read_method_and_head(*read[:2], encoder, folder)
        except UserError as error:
            assert len(str(error)) < 3000
            refused += 1
        except Exception as error:
            raise AssertionError(f"folder {number}") from error
    # Many a byte and key says nothing that matters.
    assert refused > 300
