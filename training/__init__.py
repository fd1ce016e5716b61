"""How a scorer of one's own is trained: data, losses, the loop, and one look at test (LMUnit 3.2 to 3.4)."""
