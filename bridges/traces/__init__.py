"""Traces of other tools, as files that these export, made into examples: ``askance import``."""
