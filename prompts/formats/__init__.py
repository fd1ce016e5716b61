"""Prompts in people's own formats: the syntax of their variables, and the formats of their files."""
