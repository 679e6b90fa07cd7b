"""Layers and tensor operations that architectures share."""
