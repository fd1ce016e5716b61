"""Measures of outputs: numbers that code computes, with an embedder or from words alone, and without a call."""
