"""Judges that can be compared side by side: one judge, one file, one protocol."""
