"""One file a command: parses, calls one function, prints. Above all floors."""
