"""Models that take texts: `TextModel` and its parts."""
