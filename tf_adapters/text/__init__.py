"""Texts in, answers out: the text model."""
