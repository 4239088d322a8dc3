"""Starts runs: on a table, in a search, as separate processes, or on Ray.

Also trains the adapters that a fusion combines.
"""
