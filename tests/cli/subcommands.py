"""Calls subcommands in the process of the tests."""

from tf_adapters.cli import errors
from tf_adapters.cli import flags


def run(name, *arguments):
    """Returns the exit status of `tf-adapters <name> <arguments>`."""
    command = flags.load_command(name)
    parsed = flags.parse(command, list(map(str, arguments)))
    return errors.exit_status(command.run, *parsed)
