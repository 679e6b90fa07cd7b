"""The run directory: paths, metrics, saved weights, and which run started from which."""
