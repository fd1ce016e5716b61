"""What is kept: answers, lessons, the run's journal and directory. Floor 2."""
