"""A checklist that learns: questions proposed from evidence, pre-checked, and sent through the acceptance test."""
