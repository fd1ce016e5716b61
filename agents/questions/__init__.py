"""Who writes questions from what people said."""
