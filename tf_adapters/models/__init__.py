"""Combines encoder, method and head in a model.

To read the code, begin with `adapted_block.py`.
"""
