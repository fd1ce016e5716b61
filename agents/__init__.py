"""The roles that ask a model: evaluator, question writer, note-taker, deduplicator, updater, generator."""
