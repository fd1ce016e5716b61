"""One file per role: evaluator, question writer, note-taker, deduplicator, updater. Floor 3."""
