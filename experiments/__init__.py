"""Benchmarks, measured choices and the report. Floor 5."""
