"""Combines encoder, method and head. Read adapted_block.py first."""
