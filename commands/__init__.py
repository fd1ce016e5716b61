"""One file for each command: it parses arguments, calls one function and prints."""
