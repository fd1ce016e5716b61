"""Numbers alone: correlations, differences, agreement, intervals. No text, no model."""
