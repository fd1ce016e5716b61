"""One file a command: parses, calls one function, prints."""
