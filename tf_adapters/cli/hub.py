"""`tf-adapters adapters|pull|push`: adapter folders here and on the Hub.

tf-adapters adapters runs
tf-adapters pull hf://owner/name@revision my_adapter
tf-adapters push runs/sst2/adapter hf://owner/name
"""

import argparse
from pathlib import Path

from tf_adapters.cli import errors as cli_errors
from tf_adapters.cli.lists import table
from tf_adapters.common import adapter_folder
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import cut
from tf_adapters.interop import hub
from tf_adapters.interop import hub_address
from tf_adapters.interop import listing
from tf_adapters.interop import public_folder

_HEADER = ("folder", "task", "method", "kB", "metrics", "encoder", "format")


def run(arguments):
    """Runs one of the commands; returns the exit status.

    Args:
        arguments: List of strings, the first of them the command.
    """
    options = _parser().parse_args(arguments)
    return cli_errors.exit_status(lambda: print(options.function(options)))


def _parser():
    parser = argparse.ArgumentParser(prog="tf-adapters")
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser(
        "adapters", help="Lists the adapters in a folder or on the Hub."
    )
    one.add_argument("folder", help="Folder, or hf://owner/name[@revision].")
    one.set_defaults(function=_list)
    one = commands.add_parser("pull", help="Downloads an adapter.")
    one.add_argument("address", help="hf://owner/name[@revision]")
    one.add_argument("folder", help="Where to put it.")
    one.set_defaults(function=_pull)
    one = commands.add_parser("push", help="Uploads an adapter folder.")
    one.add_argument("folder", help="Adapter folder, or the run that wrote it.")
    one.add_argument("address", help="hf://owner/name[@branch]")
    one.add_argument(
        "--private", action="store_true", help="Make a private repository."
    )
    one.set_defaults(function=_push)
    return parser


def _list(options):
    folder = options.folder
    if hub_address.is_address(folder):
        folder = hub.pull(folder)
    if not Path(folder).is_dir():
        raise AdapterError(f"There is no folder {cut(folder)}.")
    found = listing.list_adapters(folder)
    if not found:
        raise AdapterError(f"No adapter lies in `{folder}`.")
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
    return table(_HEADER, rows)


def _pull(options):
    folder = Path(options.folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise AdapterError(
            f"{folder} is there already. Name a folder that is new or empty, "
            "so that the files of two adapters are not mixed."
        )
    return hub.pull(options.address, folder)


def _push(options):
    folder = adapter_folder.find_adapter_folder(options.folder)
    url = hub.push(folder, options.address, options.private)
    members = public_folder.local_members(folder)
    if not members:
        return url
    return (
        f"{url}\nIt stands on {', '.join(members)}, which only this machine "
        "has. Push these too; who loads it names them in this order with "
        "--adapters=hf://... or `adapters=`."
    )
