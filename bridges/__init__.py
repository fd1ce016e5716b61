"""Other tools reach askance here: GEPA, DSPy, Inspect, MLflow."""
