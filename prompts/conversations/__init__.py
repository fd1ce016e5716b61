"""Conversations that a text was made of: messages for a model, and the parts that questions are about."""
