"""Kills, faults, a full disk and a clock that jumps, none of which may change the result of a command."""
