"""Text to token ids and back: normalization, words, characters, subwords."""
