"""Studies, analyses and baselines from the papers."""
