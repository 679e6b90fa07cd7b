"""Run directories: paths, metrics, saved weights, and the ancestry of runs."""
