"""Commands that learn how to score from data, without a run."""
