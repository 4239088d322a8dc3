"""The grammars behind the built-in tasks, one file each."""
