"""Folders of AdapterHub's `adapters` and of Hugging Face's PEFT, in and out."""
