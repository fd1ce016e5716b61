"""A prompt that writes moves to other models."""
