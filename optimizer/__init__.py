"""What improves: the loop, its modes, the choice of questions, the weights."""
