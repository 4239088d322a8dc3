"""`tf-adapters adapters FOLDER`: lists adapters in a folder or on the Hub."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tf_adapters.cli.command import Command
from tf_adapters.cli.command import said
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import cut
from tf_adapters.report import content

_HEADER = ("folder", "task", "method", "kB", "metrics", "encoder", "format")


def print_adapters(
    options: Any, layer: dict[str, Any], arguments: Sequence[str]
) -> None:
    """Prints a table of the adapters in a folder or at a Hub address.

    See `Command.run` for this function's arguments.

    Raises:
        ConfigError: If the command does not have exactly one argument.
        AdapterError: If the folder does not exist or holds no adapter.
    """
    if len(arguments) != 1:
        raise ConfigError(
            "`tf-adapters adapters` takes a folder, or "
            f"hf://owner/name[@revision]. Received: {said(arguments)}"
        )
    print(_list(arguments[0]))


def _list(folder: Any) -> str:
    # Imported here, so that --help is fast.
    from tf_adapters.interop import hub
    from tf_adapters.interop import hub_address
    from tf_adapters.interop import listing

    if hub_address.is_address(folder):
        folder = hub.pull(folder)
    if not Path(folder).is_dir():
        raise AdapterError(f"There is no folder {cut(folder)}.")
    found = listing.list_adapters(folder)
    if not found:
        raise AdapterError(f"There is no adapter in `{folder}`.")
    rows = [
        (
            str(one.folder.relative_to(folder)),
            one.task,
            one.method,
            f"{one.size / 1000:,.0f}",
            one.metrics,
            one.encoder,
            one.format,
        )
        for one in found
    ]
    return content.as_text(content.ReportTable("", _HEADER, rows))


COMMAND = Command(
    name="adapters",
    summary="Lists the adapters in a folder or on the Hugging Face Hub: task, "
    "method, size, metrics, encoder.",
    usage="FOLDER|hf://OWNER/NAME[@REVISION]",
    examples=("tf-adapters adapters runs",),
    groups={"Output": ("verbose",)},
    run=print_adapters,
)
