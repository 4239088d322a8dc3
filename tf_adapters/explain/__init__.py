"""Explains single answers of a model, as text, as HTML and as a picture."""
