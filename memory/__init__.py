"""Storage: answers, lessons, a run's journal and directory, and the provenance of each sentence and question."""
