"""Records and texts: what is asked, of what, and what came back. Imports nothing above."""
