"""Settings: their fields, presets, and how one run's are made of them."""
