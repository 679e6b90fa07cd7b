"""Scores of translations: test sets, metrics, significance, overlap with training."""
