"""Models asked on the machines of a Ray cluster."""
