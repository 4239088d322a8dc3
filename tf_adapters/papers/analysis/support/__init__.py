"""What analyses have in common, and what runs them."""
