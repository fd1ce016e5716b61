"""Who writes questions anew for one judge."""
