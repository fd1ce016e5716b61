"""Calls of tools in outputs: checked, held against the recorded ones, and replayed."""
