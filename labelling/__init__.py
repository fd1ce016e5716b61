"""Labelling of outputs on a local page: the most informative outputs first, each label saved at once."""
