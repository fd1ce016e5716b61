"""Records and texts: what is asked, of what, and what came back. Floor 0, imports nothing above."""
