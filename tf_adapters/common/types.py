"""Types that are used in annotations throughout the package."""

from typing import Any

# A tensor of the backend, a Keras variable, or a NumPy array: Keras operations
# take all three. Keras has no type for this union, and its stubs have no type
# for the backend's tensors. A narrower alias would reject correct calls.
Tensor = Any
