"""Who writes questions: from what people said, and anew for another judge."""
