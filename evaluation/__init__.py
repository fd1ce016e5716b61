"""Everything that judges and measures: evaluate, diagnose, compare; scores, calibration, the regression check."""
