"""A checklist that learns: questions proposed from evidence, pre-checked, put together, and sent through the acceptance test."""
