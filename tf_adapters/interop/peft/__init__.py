"""Reads and writes folders of Hugging Face's PEFT."""
