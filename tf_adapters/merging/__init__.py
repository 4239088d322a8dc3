"""Several trained adapters become one, without training."""
