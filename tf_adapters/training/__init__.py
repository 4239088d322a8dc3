"""The training loop, its parts, and the run folder."""
