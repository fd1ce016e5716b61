"""Conversations that a text was made of: as models take them, and the parts of them that questions are asked of."""
