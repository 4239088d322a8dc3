"""Merges several trained adapters into one, without training."""
