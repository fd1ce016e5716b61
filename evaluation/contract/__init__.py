"""Rules that the outputs of a generating prompt must keep."""
