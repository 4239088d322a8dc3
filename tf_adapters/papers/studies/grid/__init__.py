"""From a study's file to its runs, and what they cost."""
