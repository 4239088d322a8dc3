"""Exports trained adapters: for serving, for GLUE, and for other libraries."""
