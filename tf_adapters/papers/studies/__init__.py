"""Grids of runs, with their tables."""
