"""Runs started as processes or on Ray, and the members of a fusion."""
