"""Memory of training: what is free, what a batch takes, which batch fits."""
