"""Synthetic pairs: monolingual text with its translations by runs and other teachers."""
