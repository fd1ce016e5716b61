"""Records and texts: examples, questions, prompts and verdicts. Imports nothing from the rooms above."""
