"""One file for each analysis: `table` is pure, `plot` is thin."""
