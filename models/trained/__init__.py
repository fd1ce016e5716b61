"""Scorers of one's own: small networks that answer a question with P(yes), trained by ``askance train``."""
