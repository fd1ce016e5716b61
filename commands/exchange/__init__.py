"""Judges and examples from and to other tools."""
