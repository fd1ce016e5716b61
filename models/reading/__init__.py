"""Models whose verdicts are read in this process."""
