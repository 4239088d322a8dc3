"""The training loop and its parts. Nothing in this folder writes files."""
