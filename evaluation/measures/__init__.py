"""Measures beside people's scores: curves that are fitted, a choice of those that tell something, and what they
reward."""
