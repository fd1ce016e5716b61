"""Criteria that code decides."""
