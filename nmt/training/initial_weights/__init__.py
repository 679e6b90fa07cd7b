"""Weights that a run starts from: those of another run, word vectors of the corpus."""
