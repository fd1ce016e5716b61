"""Training of a scorer: data, losses, the loop, and one measurement on test (LMUnit 3.2 to 3.4)."""
