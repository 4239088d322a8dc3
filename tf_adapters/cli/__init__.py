"""The command line: subcommands, flags, help texts, lists and errors."""
