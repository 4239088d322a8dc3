"""Folders of PEFT, read and written."""
