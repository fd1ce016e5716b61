"""What must hold of the outputs of a prompt that writes."""
