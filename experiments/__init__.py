"""Published data sets, the papers' tables, IFBench, and committed results."""
