"""Data: from files of sentence pairs to a prepared dataset on disk, and from a dataset to batches."""
