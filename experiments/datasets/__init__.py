"""Human-rated data sets: one file each, from a local file or from the Hugging Face hub.

Every loader takes the files as their authors publish them, as UniEval prepared them, or in askance's own format,
and gives the same records: :class:`~askance.prompts.examples.Example` with human scores,
:class:`~askance.prompts.examples.Preference`, or, for generators, examples without an output.
"""

from __future__ import annotations

from .registry import PAIRS, PROMPTS, RATED, load_pairs_of, load_prompts, load_rated

__all__ = ["PAIRS", "PROMPTS", "RATED", "load_pairs_of", "load_prompts", "load_rated"]
