"""Code that analyses share, and the code that runs them."""
