"""Calls of tools in outputs: checks, comparison with recorded calls, and replay."""
