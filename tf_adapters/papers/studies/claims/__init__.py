"""Compares the claims of a paper with measured results."""
