"""All that is kept: answers, lessons, the run's journal and directory, where each sentence comes from."""
