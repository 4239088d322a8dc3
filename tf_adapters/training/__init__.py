"""The training loop and its parts; nothing here writes a file."""
