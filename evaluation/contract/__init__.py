"""Rules that the outputs of a prompt that writes must keep."""
