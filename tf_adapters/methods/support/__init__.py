"""Code that several methods share: slots, bottleneck widths, packing."""
