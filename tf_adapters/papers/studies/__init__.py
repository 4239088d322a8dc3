"""Studies: grids of runs, with tables and pictures."""
