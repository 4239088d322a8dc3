"""Loads runs of different tasks as one bank, to export them together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common import adapter_folder
from tf_adapters.common.errors import AdapterError

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Sequence
    import os

    from tf_adapters.config.settings import Config
    from tf_adapters.data.tokens.packer import Packer
    from tf_adapters.models.bank_model import BankModel
    from tf_adapters.tasks.task import Task


def load(
    folders: Sequence[str | os.PathLike[str]], precision: str | None = None
) -> tuple[BankModel, Packer, list[Task]]:
    """Loads the adapters of several runs as one `BankModel`.

    Returns the bank, its packer, and the task of each member. The encoder is
    loaded for this bank, and nothing else uses it.

    Args:
        folders: List of run folders. They must have the same encoder and
            `max_length`, and different tasks.
        precision: Precision of the encoder. `None` (default) is the precision
            of the runs, which must then be the same for all.

    Raises:
        AdapterError: If the runs do not fit together.
    """
    # Imported here, so that library users can export without training code.
    from tf_adapters.config import resolve
    from tf_adapters.config import task as config_task
    from tf_adapters.data.tokens.packer_choice import packer_of
    from tf_adapters.encoders.load import load_encoder
    from tf_adapters.models import bank_model as bank_lib

    _check_runs(folders)
    configs = [resolve.load_config(Path(f) / "config.yaml") for f in folders]
    tasks = [config_task.declared_task(config) for config in configs]
    _check_tasks(tasks)
    max_length = _common(
        configs, "data.max_length", lambda c: c.data.max_length
    )
    _check_encoders(folders)
    precision = precision or _common(
        configs, "train.precision", lambda c: c.train.precision
    )
    quantize = _common(configs, "quantize", lambda c: c.quantize)
    encoder, tokenizer = load_encoder(
        configs[0].encoder, precision, quantize=quantize
    )
    bank = bank_lib.load_bank(folders, encoder)
    packer = packer_of(tokenizer, max_length, encoder.takes_segments)
    return bank, packer, tasks


def _check_runs(folders: Sequence[str | os.PathLike[str]]) -> None:
    for folder in folders:
        if not (Path(folder) / "config.yaml").is_file():
            raise AdapterError(
                f"{folder} is not a run folder: it has no config.yaml, which "
                "says the task and the encoder. For adapters without a run "
                "use `tf_adapters.load_bank` and `export_bank` in Python."
            )


def _check_encoders(folders: Sequence[str | os.PathLike[str]]) -> None:
    """Raises an error if the runs have different encoders.

    Compares fingerprints, because the same encoder may have several names.
    """
    names = {}
    for folder in folders:
        encoder = adapter_folder.read_adapter_config(
            adapter_folder.find_adapter_folder(folder)
        )
        encoder = encoder["encoder"]
        names[encoder["fingerprint"]] = encoder["name"]
    if len(names) > 1:
        raise AdapterError(
            "Runs that are exported together must have the same `encoder`. "
            f"Found: {', '.join(sorted(names.values()))}."
        )


def _check_tasks(tasks: Sequence[Task]) -> None:
    names = [task.name for task in tasks]
    for task in tasks:
        if names.count(task.name) > 1:
            raise AdapterError(
                f"Two of the adapters are of task `{task.name}`, so a request "
                "could not say which one it wants. Give one of them."
            )


def _common(
    configs: Sequence[Config], what: str, of: Callable[[Config], Any]
) -> Any:
    values = {of(config) for config in configs}
    if len(values) > 1:
        found = ", ".join(sorted(map(str, values)))
        raise AdapterError(
            f"Runs that are exported together must have the same `{what}`. "
            f"Found: {found}."
        )
    return values.pop()
