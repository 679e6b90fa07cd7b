"""Tokenizers, which normalize text and convert it into ids of words, characters or subwords, and back."""
