"""Display of training on a terminal."""
