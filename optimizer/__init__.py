"""The improvement loop and its numerical parts. Floor 4."""
