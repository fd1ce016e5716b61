"""Support for coding agents: a server of the Model Context Protocol, and a skill with instructions for them."""
