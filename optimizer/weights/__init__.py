"""Learning how question scores add up, from preference pairs and ratings (LMUnit §3.5)."""
