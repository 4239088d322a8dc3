"""Reads a study's file, and derives its runs and their cost."""
