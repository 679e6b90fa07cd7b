"""Model architectures behind one contract (``base``)."""
