"""Code shared by the analyses, and the code that runs them."""
