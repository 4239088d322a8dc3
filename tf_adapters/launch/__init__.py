"""Runs that are started for a user: from a table, or many in a search."""
