"""Tokenizers: normalization, words, characters and subwords to ids and back."""
