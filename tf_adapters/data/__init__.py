"""Loads the rows of tasks and turns them into batches of token ids."""
