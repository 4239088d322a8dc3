"""From a trained adapter to what serves it."""
