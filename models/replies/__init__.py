"""Replies read: yes or no, in words, in tokens and in the language of the prompt."""
