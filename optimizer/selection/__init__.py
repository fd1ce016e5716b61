"""Which questions are worth asking: selection by expected information gain (EIG §3)."""
