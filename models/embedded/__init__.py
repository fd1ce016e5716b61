"""Models that run on this machine from a GGUF file: known by name, fetched once, served by a child process."""
