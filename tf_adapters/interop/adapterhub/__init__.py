"""Reads and writes folders of AdapterHub's library `adapters`."""
