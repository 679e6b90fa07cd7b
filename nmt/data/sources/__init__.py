"""Readers of corpus files, none of which runs anything that a file holds."""
