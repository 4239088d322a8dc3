"""Types that annotations of several folders share."""

from typing import Any

# A tensor of the backend, a Keras variable, or a NumPy array: Keras operations
# take all three. Keras has no type for the union, and its own stubs none for
# the backend's tensors, so that a narrower alias would reject correct calls.
Tensor = Any
