"""Batches of tokens, in an order that depends only on seed and epoch."""
