"""All that improves a prompt or judge: the loop, its modes, the choice of questions, the weights."""
