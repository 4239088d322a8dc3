"""Starts runs: from a table, in a search, as processes, or on Ray.

Also trains the members of a fusion.
"""
