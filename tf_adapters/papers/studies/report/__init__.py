"""A study's tables, pictures and page."""
