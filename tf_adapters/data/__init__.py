"""From names of tasks to rows, and from rows to batches of token ids."""
