"""What was measured, one file a question; each writes the figures that the pages in docs/results quotes."""
