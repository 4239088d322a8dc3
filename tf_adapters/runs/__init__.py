"""Run folders, and the runs that start, resume and finish in them."""
