"""The questions that are worth asking: selection by expected information gain (EIG §3)."""
