"""Learning from label proportions: a textbook that runs, and the package of the same code."""

__version__ = "0.1.0"
