"""Pages of runs and other results, each one HTML file."""
