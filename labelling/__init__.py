"""A place to label: outputs on a local page, the most telling first, saved as people go."""
