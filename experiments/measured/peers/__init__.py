"""Beside other tools: what a call costs with each of them (``python -m`` this), and what they learn from the same comments (``beside``)."""
