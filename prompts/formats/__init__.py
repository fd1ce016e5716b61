"""Prompts as people have them: how their variables are written, and the files that they come in."""
