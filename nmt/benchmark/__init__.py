"""Measures of this machine: matrix products, training, decoding."""
