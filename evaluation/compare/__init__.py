"""Judges side by side: one protocol, the judges by name in ``judges.py``, and what each is worth."""
