"""Judges side by side: one protocol, the judges by name in ``judges.py``, and their comparison."""
