"""Figures from metrics and arrays, without TensorFlow."""
