"""Helpers that any module can use: errors, files, checks, the network."""
