"""Loads pretrained encoders and their tokenizers."""
