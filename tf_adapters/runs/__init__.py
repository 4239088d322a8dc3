"""The run folder, and what begins, goes on and ends in it."""
