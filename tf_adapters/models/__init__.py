"""Encoder, method and head put together. Read adapted_block.py first."""
