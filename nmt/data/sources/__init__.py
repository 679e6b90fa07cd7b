"""Corpus files: their formats, their download, and readers that run no code from a file."""
