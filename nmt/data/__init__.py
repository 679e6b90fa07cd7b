"""From files of sentence pairs to a prepared dataset on disk, and from there to batches."""
