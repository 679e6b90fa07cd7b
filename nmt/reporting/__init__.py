"""HTML reports of runs and evaluations, without external resources."""
