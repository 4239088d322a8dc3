"""What several methods share and is no method: slots, widths, packing."""
