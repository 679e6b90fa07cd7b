"""Decoding: greedy search, sampling and beam search with any model, and the translation of sentences."""
