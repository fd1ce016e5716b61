"""Published data sets: rated examples, preference pairs, or prompts."""

from __future__ import annotations

from .registry import PAIRS, PROMPTS, RATED, load_pairs_of, load_prompts, load_rated

__all__ = ["PAIRS", "PROMPTS", "RATED", "load_pairs_of", "load_prompts", "load_rated"]
