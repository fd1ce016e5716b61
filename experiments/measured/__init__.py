"""What was measured, one file a question; each writes the figures that docs/results.md quotes."""
