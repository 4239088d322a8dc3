"""The wing of the papers: studies, analyses and baselines."""
