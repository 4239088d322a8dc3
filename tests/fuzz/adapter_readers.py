"""Readers of adapter folders, of this library and of others."""

import functools
from pathlib import Path
import shutil

import keras
from safetensors.numpy import load_file

from tests.fuzz.reader import Reader
from tests.interop import folders
from tests.interop.torch_files import write_torch_file
import tf_adapters
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.interop import foreign_folder
from tf_adapters.interop import stored_adapter
from tf_adapters.interop import torch_file
from tf_adapters.models import adapter_reading


@functools.cache
def _encoder(name):
    return folders.encoder(f"x/{name}")


def _make_ours(method, folder):
    keras.utils.set_random_seed(0)
    head = heads.Classification(("no", "yes"))
    model = tf_adapters.adapt(_encoder("bert"), method, head)
    tf_adapters.save_adapter(model, folder / "adapter", {"task": "films"})
    (folder / "adapter" / "README.md").unlink()


def _content(content):
    head = None if content.head is None else heads.to_config(content.head)
    method = methods.to_config(content.method)
    return method, head, content.tensors, content.config["details"]


def _read_ours(folder):
    return _content(
        adapter_reading.read_adapter(folder / "adapter", _encoder("bert"))
    )


def _load_ours(folder):
    """Builds the model; returns its weights."""
    model = tf_adapters.load_adapter(folder / "adapter", _encoder("bert"))
    return {k: v.numpy() for k, v in model.trained_variables().items()}


def _make_foreign(case, folder):
    shutil.copytree(folders.FIXTURES / case, folder, dirs_exist_ok=True)


def _make_torch(case, folder):
    _make_foreign(case, folder)
    for path in folder.rglob("*.safetensors"):
        stem = path.stem
        stem = stem if stem == "adapter_model" else f"pytorch_{stem}"
        write_torch_file(path.with_name(f"{stem}.bin"), load_file(path))
        path.unlink()


def _read_foreign(encoder, folder):
    stored = stored_adapter.find_stored(folder)
    encoder = _encoder(encoder)
    if stored.format == "tf_adapters":
        return _content(adapter_reading.read_adapter(stored, encoder))
    config, tensors, _ = foreign_folder.read_folder(stored, encoder)
    method, head = adapter_reading.read_method_and_head(
        config, tensors, encoder, folder
    )
    head = None if head is None else heads.to_config(head)
    return methods.to_config(method), head, tensors


def _foreign(case, make=_make_foreign):
    return Reader(
        functools.partial(make, case),
        functools.partial(_read_foreign, Path(case).name.partition("_")[0]),
    )


def _make_bin(folder):
    source = folders.FIXTURES / "peft" / "bert_ia3"
    (weights,) = source.glob("*.safetensors")
    write_torch_file(folder / "weights.bin", load_file(weights))


_SEALED = ("adapter/adapter.safetensors",)
READERS = {
    "adapter": Reader(
        functools.partial(_make_ours, methods.Houlsby(units=4)),
        _read_ours,
        _SEALED,
    ),
    "adapter, LoRA": Reader(
        functools.partial(_make_ours, methods.LoRA(rank=2)),
        _read_ours,
        _SEALED,
    ),
    "adapter, as a model": Reader(
        functools.partial(_make_ours, methods.Houlsby(units=4)),
        _load_ours,
        _SEALED,
    ),
    "AdapterHub": _foreign("adapterhub/bert_pfeiffer"),
    "AdapterHub, fusion": _foreign("adapterhub/bert_fusion"),
    "AdapterHub, UniPELT": _foreign("adapterhub/bert_unipelt"),
    "AdapterHub, span head": _foreign("adapterhub/bert_deep_span"),
    "AdapterHub, .bin": _foreign("adapterhub/bert_houlsby", _make_torch),
    "PEFT": _foreign("peft/bert_lora"),
    "PEFT, (IA)^3": _foreign("peft/bert_ia3"),
    "PEFT, .bin": _foreign("peft/bert_lora", _make_torch),
    ".bin": Reader(
        _make_bin,
        lambda folder: torch_file.read_torch_file(folder / "weights.bin"),
    ),
}
