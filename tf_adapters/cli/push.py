"""`tf-adapters push FOLDER ADDRESS`: uploads an adapter to the Hub."""

from __future__ import annotations

from collections.abc import Sequence
import os
from pathlib import Path
from typing import Any

from tf_adapters.cli.command import Command
from tf_adapters.cli.command import Flag
from tf_adapters.cli.command import said
from tf_adapters.common.errors import ConfigError


def run_push(
    options: Any, layer: dict[str, Any], arguments: Sequence[str]
) -> None:
    """Uploads an adapter to the Hub, and prints its address there.

    If the adapter depends on other adapters that only this machine has, prints
    a line that names them. See `Command.run` for this function's arguments.

    Raises:
        ConfigError: If the command does not have exactly two arguments.
    """
    if len(arguments) != 2:
        raise ConfigError(
            "`tf-adapters push` takes an adapter folder, or the run that wrote "
            f"it, and hf://owner/name[@branch]. Received: {said(arguments)}"
        )
    # Imported here, so that --help is fast.
    from tf_adapters.common import adapter_folder
    from tf_adapters.interop import formats
    from tf_adapters.interop import hub
    from tf_adapters.interop import public_folder

    folder = Path(arguments[0])
    # A setup is the adapter itself, even if a member is called `adapter`.
    if not os.path.isfile(folder / formats.SETUP_FILE):
        folder = adapter_folder.find_adapter_folder(folder)
    print(hub.push(folder, arguments[1], options.private))
    members = public_folder.local_members(folder)
    if members:
        print(
            f"It depends on {', '.join(members)}, which only this machine has. "
            "Push these too. To load it, name them in this order with "
            "--adapters=hf://... or `adapters=`."
        )


COMMAND = Command(
    name="push",
    summary="Uploads an adapter folder to the Hugging Face Hub.",
    usage="RUN|FOLDER hf://OWNER/NAME[@BRANCH]",
    examples=("tf-adapters push runs/sst2 hf://owner/name --private",),
    groups={"Output": ("private", "verbose")},
    run=run_push,
    own_flags=(
        Flag("private", "Require a private repository.", False, "boolean"),
    ),
)
