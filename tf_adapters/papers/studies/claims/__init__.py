"""What a paper claims, compared with what was measured."""
