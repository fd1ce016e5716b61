"""Requests that are gathered and bought in batches, at half the price and within a day."""
