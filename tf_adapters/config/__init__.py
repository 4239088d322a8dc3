"""The settings of a run: fields, presets, and how they are combined."""
