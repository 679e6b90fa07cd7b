"""Figures of the lesson: position encodings, masks, embeddings."""
