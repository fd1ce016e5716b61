"""Criteria of outputs: questions, checks and measures."""
