"""Baselines without an encoder."""
