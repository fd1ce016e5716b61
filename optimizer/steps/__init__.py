"""Ways to improve the best version of a run, one file each."""
