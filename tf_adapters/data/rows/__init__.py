"""Loads the rows of tasks and of files, and checks their types."""
