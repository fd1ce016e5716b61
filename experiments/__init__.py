"""Data sets, the papers' tables, IFBench, and what was measured."""
