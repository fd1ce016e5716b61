"""IFBench: tuning a generator's prompt against the official checkers."""
