"""A checklist that learns: questions proposed from evidence, screened, put together, and sent through the gate."""
