"""Runs that are started for a user: from a table, in a search, as processes.

On Ray, too; and those of the members of a fusion.
"""
