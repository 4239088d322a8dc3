"""A study's tables, pictures and HTML report."""
