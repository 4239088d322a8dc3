"""Folders of the AdapterHub library `adapters`, read and written."""
