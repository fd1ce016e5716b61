"""Measurements to repeat before a release; each writes figures that the pages in docs/results quote."""
