"""IFBench: a generator's prompt tuned against its official checkers."""
