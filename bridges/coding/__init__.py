"""For coding agents: a server of the Model Context Protocol, and the skill that tells them how to work."""
