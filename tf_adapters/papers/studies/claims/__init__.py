"""What a paper prints and claims, beside what was measured."""
