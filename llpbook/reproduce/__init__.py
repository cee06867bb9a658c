"""The papers' protocols, runnable and resumable; results are CSV files in ``results``."""
