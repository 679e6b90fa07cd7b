"""Model architectures behind one contract (``base``), and what counts their weights and arithmetic."""
