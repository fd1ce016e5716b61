"""Measures beside people's scores: their fitted curves, the choice of those that predict the scores, and what they
reward."""
