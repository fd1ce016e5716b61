"""Other tools that learn from the same comments, beside a run of ours (``beside``)."""
